/* SPDX-License-Identifier: MIT */
/* plain.c - a block of columns, or a JSON object on a line, for each tick; see view.h. */
#include "snapshot/view/view.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/alloc.h"
#include "snapshot/model/state.h"

enum { WAIT_MS = 1000, JSON_SCHEMA = 1 };

static const struct view_settings *settings;
static uint32_t *order;
static size_t max_order;

static size_t rows_of(struct view *view)
{
	size_t nr = watch_order(&view->watch, WATCH_BY_BYTES, "", &order, &max_order);

	return settings->top && nr > settings->top ? settings->top : nr;
}

/* ---- columns ---- */

static void print_columns(struct view *view)
{
	const struct lines_style style = {
		.width = LINES_WIDTH, .has_utf8 = false, .has_exact = settings->has_exact};
	char line[LINES_BYTES], how[160];
	size_t nr_rows = rows_of(view);
	struct lines_head head;
	struct lines_row row;

	view_head(view, &head, how);
	for (unsigned i = 0; i < LINES_HEADS; i++) {
		lines_head(line, &head, &style, i);
		puts(line);
	}
	lines_heading(line, &style);
	puts(line);
	for (size_t i = 0; i < nr_rows; i++) {
		view_row(view, order[i], &row);
		lines_row(line, &row, &style);
		puts(line);
	}
	putchar('\n');
}

/* ---- JSON ---- */

/* jansson takes only valid UTF-8: names of strangers may not be. */
static json_t *text_of(const char *text)
{
	json_t *value = text ? json_string(text) : json_null();

	return value ? value : json_string("?");
}

/* What is not known yet is null, not 0. */
static json_t *number_of(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *growth_object(const struct growth *growth)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "bytes_per_s", growth->bytes_per_s, "p", growth->p, "since_s",
		growth->since_s, "gained_bytes", growth->gained_bytes);
}

static json_t *row_object(struct view *view, uint32_t site)
{
	const struct model_site *now = &view->watch.decode.model->sites[site];
	struct lines_row row;
	char reason[512];
	json_t *object;

	view_row(view, site, &row);
	object = json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:o}", "id", (json_int_t)now->id,
		"kind", model_kind_name(now->kind), "verdict", row.verdict, "bytes", (json_int_t)row.bytes,
		"blocks", (json_int_t)row.blocks, "total_bytes", (json_int_t)now->count.alloc_bytes,
		"total_blocks", (json_int_t)now->count.alloc_blocks, "change_bytes",
		isnan(row.change_bytes) ? json_null() : json_integer((json_int_t)row.change_bytes), "since_bytes", (json_int_t)row.since_bytes,
		"slope_bytes_per_s", number_of(row.bytes_per_s));
	if (watch_growth(&view->watch, site)->kind != GROWTH_STEADY)
		(void)json_object_set_new(object, "growth", growth_object(watch_growth(&view->watch, site)));
	if (view_reason(view, site, reason, sizeof(reason)))
		(void)json_object_set_new(object, "reason", text_of(reason));
	if (row.has_lost) {
		(void)json_object_set_new(object, "lost_bytes", json_integer((json_int_t)now->scan.lost_bytes));
		(void)json_object_set_new(object, "indirect_bytes", json_integer((json_int_t)now->scan.indirect_bytes));
	}
	if (row.oldest_ms != UINT64_MAX)
		(void)json_object_set_new(object, "oldest_s", json_real((double)row.oldest_ms / 1000));
	if (row.function)
		(void)json_object_set_new(object, "function", text_of(row.function));
	if (row.file)
		(void)json_object_set_new(object, "file", text_of(row.file));
	if (row.file && row.line)
		(void)json_object_set_new(object, "line", json_integer(row.line));
	if (row.module)
		(void)json_object_set_new(object, "module", text_of(row.module));
	return object;
}

/* Each place the program has marked, with what it held there last. */
static json_t *marks_array(const struct model *model)
{
	json_t *marks = json_array();

	for (size_t i = 0; i < model->nr_marks; i++) {
		const struct model_mark *mark = &model->marks[i];

		(void)json_array_append_new(marks,
			json_pack("{s:o, s:I, s:I, s:I}", "name", text_of(mark->name), "count",
				(json_int_t)mark->count, "bytes", (json_int_t)mark->last.bytes, "blocks",
				(json_int_t)mark->last.blocks));
	}
	return marks;
}

static const char *state_of(const struct view *view)
{
	const struct live_status *status = view->live ? live_status(view->live) : NULL;

	/* while exit's handlers run it is still there */
	return status && status->way != LIVE_ENDED ? "live" : state_name(view->watch.decode.model);
}

static void print_json(struct view *view)
{
	size_t nr_rows = rows_of(view);
	struct lines_head head;
	char how[160];
	json_t *all, *sites = json_array();

	view_head(view, &head, how);
	all = json_pack("{s:s, s:i, s:i, s:o, s:s, s:s, s:f, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I}}",
		"leakwatch", LW_VERSION, "schema", JSON_SCHEMA, "pid", head.pid, "exe", text_of(head.program),
		"state", state_of(view), "how", how, "seconds", (double)head.age_ns / 1e9, "tick",
		(json_int_t)view->watch.nr_ticks, "summary", "live_bytes", (json_int_t)head.bytes, "live_blocks",
		(json_int_t)head.blocks, "peak_bytes", (json_int_t)head.peak_bytes, "rss_bytes",
		(json_int_t)head.rss_bytes, "total_allocs", (json_int_t)view->watch.totals.nr_allocs,
		"total_frees", (json_int_t)view->watch.totals.nr_frees, "sites", (json_int_t)head.nr_sites,
		"since_bytes", (json_int_t)head.since_bytes, "bytes_per_s", number_of(head.bytes_per_s), "dropped",
		(json_int_t)head.nr_dropped, "lost_messages", (json_int_t)head.nr_lost, "mismatches", (json_int_t)head.nr_mismatches, "errors", (json_int_t)head.nr_errors);
	alloc_check(all);
	for (size_t i = 0; i < nr_rows; i++)
		(void)json_array_append_new(sites, row_object(view, order[i]));
	if (view->watch.decode.model->nr_marks)
		(void)json_object_set_new(all, "marks", marks_array(view->watch.decode.model));
	(void)json_object_set_new(all, "sites", sites);
	(void)json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(all);
}

/* ---- ticks ---- */

static bool is_silent(void)
{
	return settings->save && !strcmp(settings->save, "-");
}

static void print_tick(struct view *view)
{
	view->nr_shown++;
	if (!is_silent()) {
		if (settings->is_json)
			print_json(view);
		else
			print_columns(view);
	}
	if (fflush(stdout))
		view->has_ended = true; /* nobody reads it any more */
	if (view->save && !view->save_error && fflush(view->save))
		view->save_error = errno;
}

static void print_tick_of_file(struct view *view)
{
	if (!view->max_shown || view->nr_shown < view->max_shown)
		print_tick(view);
}

static int end_status(const struct view *view)
{
	if (view->save_error) {
		(void)fprintf(stderr, "leakwatch-snapshot: cannot write %s: %s\n", settings->save,
			strerror(view->save_error));
		return 1;
	}
	return ferror(stdout) ? 1 : 0;
}

int view_plain(const struct view_settings *wanted)
{
	enum live_news news;
	struct view view;
	int status;

	settings = wanted;
	status = view_open(&view, settings);
	if (status)
		return status;
	if (!view.live)
		view.on_tick = print_tick_of_file;
	do {
		news = view_wait(&view, -1, WAIT_MS);
		if (view.live && (news == LIVE_TICK || news == LIVE_END))
			print_tick(&view);
		else if (news == LIVE_END && !view.watch.nr_ticks) {
			watch_sample(&view.watch, view.watch.decode.model->hello.seconds_ns);
			print_tick(&view); /* the records of a moment, not of a watch */
		}
	} while (news != LIVE_FAILED && !view.has_ended &&
		 !(view.max_shown && view.nr_shown >= view.max_shown));
	status = news == LIVE_FAILED ? 1 : end_status(&view);
	view_close(&view);
	free(order);
	return status;
}
