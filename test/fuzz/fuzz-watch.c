/* SPDX-License-Identifier: MIT */
/*
 * fuzz-watch.c - any bytes as a stream that is watched: sampled, judged, put in order, made into lines of text,
 * as the screen does, also between the records of a tick. For libFuzzer, as fuzz-decode.c.
 *
 * No name comes from a file: each frame is a function of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/report/trend_text.h"
#include "snapshot/view/lines.h"
#include "snapshot/view/watch.h"

enum { MOST_TICKS = 200, ROWS = 3, RECORDS_BETWEEN = 5 };

struct symbols {
	int unused;
};

const char *symbols_variable(struct symbols *symbols, unsigned module, uint64_t offset, uint64_t *into)
{
	(void)symbols, (void)module, (void)offset, (void)into;
	return NULL;
}

const struct symbol_frame *symbols_resolve(
	struct symbols *symbols, unsigned module, uint64_t offset, bool exact_pc, size_t *nr_frames)
{
	static const struct symbol_frame frames[] = {
		{.function = "function", .file = "file.c", .line = 7},
		{.function = "std::vector<int>::push_back(int)"},
		{.function = NULL},
	};

	(void)symbols, (void)module, (void)exact_pc;
	*nr_frames = 1 + offset % 2;
	return &frames[offset % 2 ? 0 : offset % 3];
}

const char *symbols_callee(struct symbols *symbols, unsigned module, uint64_t offset)
{
	(void)symbols, (void)module;
	return offset % 5 ? NULL : "strdup";
}

void symbols_module(struct symbols *symbols, unsigned id, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	(void)symbols, (void)id, (void)path, (void)build_id, (void)build_id_bytes;
}

static void show(struct watch *watch, size_t site)
{
	const struct lines_style style = {.width = 40 + (unsigned)site % 440, .has_utf8 = site % 2, .has_exact = site % 3};
	const struct watch_site *judged = watch_judge(watch, site);
	const struct model_site *now = &watch->decode.model->sites[site];
	struct trend trend = {.growth = *watch_growth(watch, site), .nr_points = 1};
	char line[LINES_BYTES], why[TREND_TEXT_BYTES];
	struct lines_row row = {.bytes = now->live_bytes,
		.blocks = now->live_blocks,
		.share = 0.5,
		.change_bytes = (double)judged->change_bytes,
		.since_bytes = (int64_t)(now->live_bytes - judged->base_bytes),
		.bytes_per_s = watch_slope(watch, site),
		.oldest_ms = watch_oldest_ms(watch, site),
		.verdict = verdict_name(watch_verdict(watch, site)),
		.function = judged->function,
		.file = judged->file,
		.module = judged->module,
		.line = judged->line};

	for (size_t i = 0; i < watch->nr_samples && row.nr_trend < LINES_TREND; i++)
		row.trend[row.nr_trend++] = watch_at(watch, site, i);
	lines_row(line, &row, &style);
	if (strlen(line) >= LINES_BYTES)
		abort();
	trend_text(why, &trend);
	trend_outlook(why, &trend.growth, 1 << 30);
}

static void draw(struct watch *watch)
{
	uint32_t *order = NULL;
	size_t max_order = 0, nr;
	enum watch_sort sort = (enum watch_sort)(watch->nr_ticks % WATCH_NR_SORTS);

	nr = watch_order(watch, sort, watch->nr_ticks % 7 ? "" : "fun", &order, &max_order);
	for (size_t i = 0; i < nr && i < ROWS; i++)
		show(watch, order[i]);
	if (watch->nr_ticks % 11 == 3)
		watch_reset_baseline(watch);
	free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nr_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nr_bytes)
{
	static struct suppress suppress;
	static struct symbols symbols;
	struct lw_options options;
	struct watch watch;
	size_t nr_records = 0;

	lw_options_init(&options);
	watch_init(&watch, &symbols, &suppress, &options);
	while (nr_bytes >= sizeof(struct lw_wire_head) && watch.nr_ticks < MOST_TICKS) {
		struct lw_wire_head head, *record;
		uint64_t nr_ticks = watch.nr_ticks;
		bool goes_on;

		memcpy(&head, data, sizeof(head));
		if (decode_head(&head) || head.bytes > nr_bytes)
			break;
		record = malloc(head.bytes);
		memcpy(record, data, head.bytes);
		goes_on = watch_record(&watch, record);
		free(record);
		if (!goes_on)
			break;
		if (watch.nr_ticks != nr_ticks || ++nr_records % RECORDS_BETWEEN == 0)
			draw(&watch);
		data += head.bytes;
		nr_bytes -= head.bytes;
	}
	watch_fini(&watch);
	return 0;
}
