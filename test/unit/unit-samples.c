/* SPDX-License-Identifier: MIT */
/* unit-samples.c - samples over time: changes, baseline, slope, a series that halves, order, filter. */
#include "test/unit/tap.h"

#include <math.h>
#include <stdlib.h>

#include "snapshot/model/past.h"
#include "snapshot/model/trend.h"
#include "snapshot/view/watch.h"

/* Names as the symbols would give them. */
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
	static const struct symbol_frame frames[] = {{.function = "function"}, {.function = "other"}, {.function = "outer"}};

	(void)symbols, (void)module, (void)exact_pc;
	*nr_frames = 1;
	return &frames[offset / 0x10 > 2 ? 2 : offset == 0x20];
}

const char *symbols_callee(struct symbols *symbols, unsigned module, uint64_t offset)
{
	(void)symbols, (void)module, (void)offset;
	return NULL;
}

void symbols_module(struct symbols *symbols, unsigned id, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	(void)symbols, (void)id, (void)path, (void)build_id, (void)build_id_bytes;
}

static struct watch watch;
static struct suppress suppress;
static struct lw_options options;

static void say_module(const char path[4])
{
	union {
		struct lw_wire_module module;
		unsigned char room[128];
	} record = {.module = {.head = {LW_WIRE_MODULE, LW_WIRE_VERSION, 88}, .start = 0, .end = 1000, .path_bytes = 4}};

	memcpy(record.module.path, path, 4);
	ok(watch_record(&watch, &record.module.head), "module");
}

static void say_site(uint32_t id, uint64_t pc)
{
	union {
		struct lw_wire_site site;
		unsigned char room[64];
	} record = {.site = {.head = {LW_WIRE_SITE, LW_WIRE_VERSION, 56}, .id = id, .nr_frames = 1, .kind = LW_KIND_MALLOC,
			     .oldest_ms = UINT32_MAX}};

	record.site.pc[0] = pc;
	(void)watch_record(&watch, &record.site.head);
}

static void say_deep_site(uint32_t id, uint64_t pc, uint64_t caller)
{
	union {
		struct lw_wire_site site;
		unsigned char room[64];
	} record = {.site = {.head = {LW_WIRE_SITE, LW_WIRE_VERSION, 64}, .id = id, .nr_frames = 2, .kind = LW_KIND_MALLOC,
			     .oldest_ms = UINT32_MAX}};

	record.site.pc[0] = pc;
	record.site.pc[1] = caller;
	(void)watch_record(&watch, &record.site.head);
}

static void say_hinted_site(uint32_t id, const char file[4])
{
	union {
		struct lw_wire_site site;
		unsigned char room[64];
	} record = {.site = {.head = {LW_WIRE_SITE, LW_WIRE_VERSION, 64}, .id = id, .nr_frames = 1, .kind = LW_KIND_MALLOC,
			     .oldest_ms = UINT32_MAX, .hint_line = 4, .hint_file_bytes = 3}};

	record.site.pc[0] = 0x10;
	memcpy(record.room + sizeof(record.site) + 10, file, 3);
	(void)watch_record(&watch, &record.site.head);
}

static void say_count(uint32_t id, uint64_t bytes, uint64_t blocks, uint32_t oldest_ms)
{
	struct lw_wire_count count = {.head = {LW_WIRE_COUNT, LW_WIRE_VERSION, sizeof(count)}, .site = id,
		.oldest_ms = oldest_ms, .alloc_bytes = bytes, .alloc_blocks = blocks};

	(void)watch_record(&watch, &count.head);
}

static void say_tick_of(uint64_t at_ms, uint32_t flags)
{
	struct lw_wire_tick tick = {.head = {LW_WIRE_TICK, LW_WIRE_VERSION, sizeof(tick)}, .at_ns = at_ms * 1000000,
		.flags = LW_TICK_LAST | flags};

	(void)watch_record(&watch, &tick.head);
}

static void say_tick(uint64_t at_ms)
{
	say_tick_of(at_ms, 0);
}

static void test_changes(void)
{
	say_module("/app");
	say_site(5, 0x10);
	say_site(9, 0x20);
	say_count(5, 1000, 10, 100);
	say_count(9, 5000, 1, UINT32_MAX);
	say_tick(1000);
	is_u64(watch.totals.bytes, 6000, "held");
	is_u64(watch.totals.since_bytes, 0, "what is there at first is the baseline");
	ok(isnan(watch.totals.bytes_per_s) && isnan(watch_slope(&watch, 0)), "one tick makes no rate");
	say_count(5, 3000, 30, 100);
	say_tick(2000);
	is_u64(watch.sites[0].change_bytes, 2000, "changed by this tick");
	is_u64(watch.totals.since_bytes, 2000, "and since the baseline");
	ok(watch.totals.bytes_per_s > 1999 && watch.totals.bytes_per_s < 2001, "rate");
	say_tick(3000);
	is_u64(watch.sites[0].change_bytes, 0, "no change, no count sent");
	ok(watch_slope(&watch, 0) > 900, "a slope");
	ok(watch_slope(&watch, 1) == 0, "none for what never changed");
	ok(!watch.sites[1].series, "which costs no series");
	is_u64(watch_oldest_ms(&watch, 0), 2900, "age of the oldest");
	ok(watch_oldest_ms(&watch, 1) == UINT64_MAX, "unknown age");
	watch_reset_baseline(&watch);
	is_u64(watch.totals.since_bytes, 0, "a new baseline");
	say_site(11, 0x10);
	say_count(11, 77, 1, 3500);
	say_tick(4000);
	is_u64(watch.sites[2].change_bytes, 77, "a new site grew from nothing");
	is_u64(watch.totals.since_bytes, 77, "since the baseline");
	is_u64(watch_at(&watch, 2, 0), 0, "its series begins with what it was before");
}

static void test_order(void)
{
	uint32_t *order = NULL;
	size_t max_order = 0;

	is_u64(watch_order(&watch, WATCH_BY_BYTES, "", &order, &max_order), 3, "three sites hold blocks");
	is_u64(order[0], 1, "by bytes");
	(void)watch_order(&watch, WATCH_BY_BLOCKS, "", &order, &max_order);
	is_u64(order[0], 0, "by blocks");
	(void)watch_order(&watch, WATCH_BY_CHANGE, "", &order, &max_order);
	is_u64(order[0], 2, "by change");
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "OTHER", &order, &max_order), 1, "a filter, whatever the case");
	is_u64(order[0], 1, "finds the function");
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "outer", &order, &max_order), 0, "one that nobody has");
	watch.patience_ns = 1;
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "function", &order, &max_order), 0, "without time no new names");
	is_u64(watch.nr_pending, 3, "and what is pending is counted");
	watch.patience_ns = 0;
	watch.nr_pending = 0;
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "function", &order, &max_order), 2, "with time there are");
	watch.patience_ns = 1;
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "function", &order, &max_order), 2, "which are remembered");
	is_u64(watch.nr_pending, 0, "so that nothing is pending");
	watch.patience_ns = 0;
	say_deep_site(13, 0x10, 0x30);
	say_count(13, 9, 1, 3600);
	say_tick(4500);
	is_u64(watch_order(&watch, WATCH_BY_BYTES, "outer", &order, &max_order), 1, "a caller is found, too");
	is_u64(order[0], 3, "it is that one");
	free(order);
}

/* A stream that is sent again, as after a loss, brings modules and hints anew. */
static void test_again(void)
{
	const struct watch_site *site = watch_judge(&watch, 0);

	is_str(site->module, "/app", "the module of a site");
	say_module("/new");
	site = watch_judge(&watch, 0);
	is_str(site->module, "/new", "is the one that was told last");
	for (int i = 0; i < 2; i++) {
		say_hinted_site(5, i ? "b.c" : "a.c");
		site = watch_judge(&watch, 0);
		is_str(site->file, i ? "b.c" : "a.c", "and so is the file of a macro");
	}
	say_site(5, 0x10);
	ok(!watch_judge(&watch, 0)->file, "also when there is none any more");
}

static void say_scan(void)
{
	struct lw_wire_scan scan = {.head = {LW_WIRE_SCAN, LW_WIRE_VERSION, sizeof(scan)}, .state = LW_SCAN_DONE};

	(void)watch_record(&watch, &scan.head);
}

static void say_found(uint32_t id, uint64_t lost, uint64_t indirect)
{
	struct lw_wire_scan_site found = {.head = {LW_WIRE_SCAN_SITE, LW_WIRE_VERSION, sizeof(found)}, .site = id,
		.lost_bytes = lost, .lost_blocks = lost > 0, .indirect_bytes = indirect, .indirect_blocks = indirect > 0};

	(void)watch_record(&watch, &found.head);
}

static void test_lost(void)
{
	struct report_sum lost = watch_lost(&watch, &(uint32_t){0});
	uint32_t most;

	is_u64(lost.blocks, 0, "nothing is lost before it was looked for");
	say_found(5, 100, 0);
	say_found(11, 7, 70);
	say_found(13, 0, 9);
	say_scan();
	lost = watch_lost(&watch, &most);
	is_u64(lost.bytes, 186, "lost, also indirectly");
	is_u64(lost.nr_sites, 3, "at three sites");
	is_u64(most, 0, "the one that lost most");
	is_str(verdict_name(watch_verdict(&watch, 0)), "lost", "which is called so");
	is_str(verdict_name(watch_verdict(&watch, 3)), "indirect", "and this one only indirectly");
	ok(!watch_is_lost(&watch, 1), "nothing of the others is");
}

static void test_halving(void)
{
	for (unsigned i = 0; i < 1000; i++) {
		say_count(5, 3000 + i * 10, 30, 100);
		say_tick(5000 + i * 1000);
	}
	ok(watch.nr_samples <= WATCH_SAMPLES && watch.nr_samples >= WATCH_SAMPLES / 2, "samples are bounded");
	ok(watch.at_ms[0] == 1000 && watch.at_ms[watch.nr_samples - 1] > 900000, "and span the whole watch");
	ok(watch_slope(&watch, 0) > 9.5 && watch_slope(&watch, 0) < 10.5, "the slope is still right");
	for (size_t i = 1, nr_bad = 0; i < watch.nr_samples; i++) {
		nr_bad += watch_at(&watch, 0, i) < watch_at(&watch, 0, i - 1) || watch.at_ms[i] <= watch.at_ms[i - 1];
		if (i + 1 == watch.nr_samples)
			is_u64(nr_bad, 0, "in order");
	}
	for (unsigned i = 0; i < 1000; i++)
		say_tick_of(2000000 + i * 1000, LW_TICK_STILL);
	ok(watch_slope(&watch, 0) > 9.5 && watch_slope(&watch, 0) < 10.5, "exit that takes its time bends nothing");
	is_u64(watch.at_ns, UINT64_C(2999000000000), "though time goes on");
}

/* Read to its end, as for a report: the ticks are the past of each site. */
static void test_past(void)
{
	struct decode decode = {.model = model_new()};
	struct lw_wire_count counts[] = {{.head = {LW_WIRE_COUNT, LW_WIRE_VERSION, sizeof(counts[0])}, .site = 5},
		{.head = {LW_WIRE_COUNT, LW_WIRE_VERSION, sizeof(counts[0])}, .site = 9}};
	struct lw_wire_tick tick = {.head = {LW_WIRE_TICK, LW_WIRE_VERSION, sizeof(tick)}, .flags = LW_TICK_LAST};
	const struct model_history *past;
	struct trend trend;
	size_t nr_bad = 0;

	for (unsigned i = 1; i <= 200; i++) {
		counts[0].alloc_bytes = UINT64_C(1000) * i;
		counts[0].alloc_blocks = i;
		counts[1].alloc_bytes = 77;
		counts[1].alloc_blocks = 1;
		tick.at_ns = UINT64_C(1000000000) * i;
		tick.flags = LW_TICK_LAST;
		(void)past_record(&decode, &counts[0].head);
		(void)past_record(&decode, &counts[1].head);
		(void)past_record(&decode, &tick.head);
	}
	counts[0].alloc_bytes = 1;
	tick.flags |= LW_TICK_STILL;
	tick.at_ns *= 2;
	(void)past_record(&decode, &tick.head);
	decode.model->hello.seconds_ns = UINT64_C(200500000000);
	model_finish(decode.model);
	past = decode.model->sites[0].history;
	is_u64(past->nr_samples, LW_HISTORY_SAMPLES, "as many samples as a history has");
	for (uint32_t i = 1; i < past->nr_samples; i++)
		nr_bad += past->samples[i].ms <= past->samples[i - 1].ms ||
			  past->samples[i].ms - past->samples[i - 1].ms > 8000;
	is_u64(nr_bad, 0, "in order, and evenly spaced");
	is_u64(past->samples[past->nr_samples - 1].ms, 200000, "up to the last tick before exit began");
	trend_judge(decode.model, &decode.model->sites[0], false, &trend);
	is_u64(trend.growth.kind, GROWTH_GROWING, "what grew by the ticks is growing");
	trend_judge(decode.model, &decode.model->sites[1], false, &trend);
	is_u64(trend.growth.kind, GROWTH_STEADY, "what did not is steady");
	model_free(decode.model);
}

enum { BEFORE_MS = 13000, PER_S = 10000 };

/* The history of a site that has grown evenly for BEFORE_MS. */
static const struct lw_wire_head *grown_history(uint32_t id)
{
	static union {
		struct lw_wire_history history;
		unsigned char room[sizeof(struct lw_wire_history) +
				   LW_HISTORY_SAMPLES * sizeof(struct lw_wire_sample)];
	} record;
	struct lw_wire_sample samples[LW_HISTORY_SAMPLES];

	for (uint32_t i = 0; i < LW_HISTORY_SAMPLES; i++) {
		samples[i].ms = (uint64_t)BEFORE_MS * (i + 1) / (LW_HISTORY_SAMPLES + 1);
		samples[i].bytes = samples[i].ms * PER_S / 1000;
	}
	record.history = (struct lw_wire_history){.head = {LW_WIRE_HISTORY, LW_WIRE_VERSION, sizeof(record)},
		.site = id,
		.nr_samples = LW_HISTORY_SAMPLES};
	memcpy(record.room + sizeof(record.history), samples, sizeof(samples));
	return &record.history.head;
}

/* It has grown when the viewer comes. */
static void begin_grown(struct symbols *symbols)
{
	watch_fini(&watch);
	watch_init(&watch, symbols, &suppress, &options);
	say_module("/app");
	say_site(5, 0x10);
	ok(watch_record(&watch, grown_history(5)), "history");
	say_count(5, BEFORE_MS / 1000 * PER_S, 10, 100);
	say_tick(BEFORE_MS);
}

/* However seldom the viewer looks, what grows goes on growing from the first look to the last. */
static void test_seldom(struct symbols *symbols)
{
	static const uint32_t intervals_ms[] = {200, 1000, 2000, 5000, 10000, 60000, 600000, 3600000};

	for (size_t i = 0; i < sizeof(intervals_ms) / sizeof(intervals_ms[0]); i++) {
		uint64_t at_ms = BEFORE_MS;
		unsigned nr_bad = 0, which = 0;

		begin_grown(symbols);
		is_u64(watch_growth(&watch, 0)->kind, GROWTH_GROWING, "growing when the viewer comes");
		for (unsigned tick = 2; tick < 200; tick++) {
			at_ms += intervals_ms[i];
			say_count(5, at_ms * PER_S / 1000, 10 * tick, 100);
			say_tick(at_ms);
			if (watch_growth(&watch, 0)->kind == GROWTH_GROWING)
				continue;
			which = nr_bad++ ? which : tick;
		}
		ok(!nr_bad, "growing at each of its looks every %u ms: %u not, the first %u", intervals_ms[i], nr_bad,
			which);
	}
	begin_grown(symbols);
	for (unsigned tick = 1; tick < 20; tick++)
		say_tick(BEFORE_MS + tick * 5000);
	is_u64(watch_growth(&watch, 0)->kind, GROWTH_BOUNDED, "what has stopped is bounded");
}

/* The same, saved, and reported from the file. */
static void test_seldom_saved(void)
{
	for (unsigned nr_ticks = 1; nr_ticks < 100; nr_ticks = nr_ticks * 3 / 2 + 1) {
		struct decode decode = {.model = model_new()};
		struct lw_wire_count count = {
			.head = {LW_WIRE_COUNT, LW_WIRE_VERSION, sizeof(count)}, .site = 5};
		struct lw_wire_tick tick = {
			.head = {LW_WIRE_TICK, LW_WIRE_VERSION, sizeof(tick)}, .flags = LW_TICK_LAST};
		uint64_t at_s = BEFORE_MS / 1000;
		struct trend trend;

		ok(past_record(&decode, grown_history(5)), "history");
		for (unsigned i = 0; i < nr_ticks; i++, at_s += 600) {
			count.alloc_bytes = at_s * PER_S;
			count.alloc_blocks = at_s;
			tick.at_ns = at_s * 1000000000;
			(void)past_record(&decode, &count.head);
			(void)past_record(&decode, &tick.head);
		}
		decode.model->hello.seconds_ns = tick.at_ns + 1;
		model_finish(decode.model);
		trend_judge(decode.model, &decode.model->sites[0], false, &trend);
		is_u64(trend.growth.kind, GROWTH_GROWING, "growing, from a file of seldom looks");
		model_free(decode.model);
	}
}

int main(void)
{
	struct symbols symbols = {0};

	lw_options_init(&options);
	watch_init(&watch, &symbols, &suppress, &options);
	test_changes();
	test_order();
	test_again();
	test_lost();
	test_halving();
	test_past();
	test_seldom(&symbols);
	test_seldom_saved();
	watch_fini(&watch);
	return done();
}
