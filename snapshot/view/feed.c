/* SPDX-License-Identifier: MIT */
/* feed.c - records of a process or a file into the watch; see view.h. */
#include "snapshot/view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/alloc.h"
#include "snapshot/model/state.h"
#include "snapshot/report/output.h"
#include "snapshot/report/trend_text.h"
#include "snapshot/source/memory.h"

static bool take_record(void *context, const struct lw_wire_head *record)
{
	struct view *view = context;
	uint64_t nr_ticks = view->watch.nr_ticks;

	if (view->save && !view->save_error && fwrite(record, record->bytes, 1, view->save) != 1)
		view->save_error = errno;
	if (!watch_record(&view->watch, record))
		return false;
	if (view->on_tick && view->watch.nr_ticks != nr_ticks)
		view->on_tick(view);
	return true;
}

/* A file of a person's choice: never through a link somebody else has put there. */
static FILE *open_save(const char *name)
{
	int fd;

	if (!strcmp(name, "-"))
		return stdout;
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

int view_open(struct view *view, const struct view_settings *settings)
{
	struct source_error error = {""};

	*view = (struct view){.name = settings->what,
		.interval_ms = settings->interval_ms,
		.max_shown = settings->nr_ticks};
	watch_init(&view->watch, settings->symbols, settings->suppress, settings->options);
	if (settings->is_pid) {
		view->live = live_open((pid_t)atoi(settings->what), settings->interval_ms, &error);
		if (!view->live) {
			(void)fprintf(stderr, "leakwatch-snapshot: %s\n", error.text);
			return 1;
		}
		view->watch.report.left_bytes = memory_left_bytes(live_pid(view->live));
	}
	if (settings->save) {
		view->save = open_save(settings->save);
		if (!view->save) {
			(void)fprintf(stderr, "leakwatch-snapshot: cannot write %s: %s\n", settings->save,
				errno == ELOOP ? output_error(-ELOOP) : strerror(errno));
			live_close(view->live);
			return 1;
		}
	}
	return 0;
}

void view_close(struct view *view)
{
	live_close(view->live);
	if (view->save && view->save != stdout && fclose(view->save) && !view->save_error)
		view->save_error = errno;
	watch_fini(&view->watch);
}

static enum live_news read_file(struct view *view)
{
	struct source_error error = {""};
	int fd = strcmp(view->name, "-") ? open(view->name, O_RDONLY | O_CLOEXEC) : 0;
	const char *missing;
	bool is_read = false;

	if (fd < 0)
		(void)snprintf(error.text, sizeof(error.text), "cannot read %s: %s", view->name, strerror(errno));
	else if (source_is_boxfile(fd))
		is_read = source_boxfile(fd, view->name, take_record, view, &error);
	else
		is_read = source_stream(fd, view->name, take_record, view, &error);
	if (fd > 0)
		close(fd);
	view->has_ended = true;
	if (view->watch.decode.why[0])
		(void)snprintf(error.text, sizeof(error.text), "cannot read %s: %s", view->name,
			view->watch.decode.why);
	else if (is_read && !view->watch.decode.model->has_hello)
		(void)snprintf(error.text, sizeof(error.text), "cannot read %s: %s", view->name,
			decode_missing(view->watch.decode.model));
	if (error.text[0])
		(void)fprintf(stderr, "leakwatch-snapshot: %s\n", error.text);
	if (!view->watch.decode.model->has_hello)
		return LIVE_FAILED;
	view->watch.decode.model->is_cut = error.is_cut;
	missing = decode_missing(view->watch.decode.model);
	view->is_cut = is_read && missing;
	if (view->is_cut)
		(void)fprintf(stderr, "leakwatch-snapshot: %s is not complete: %s\n", view->name, missing);
	return LIVE_END;
}

enum live_news view_wait(struct view *view, int fd, uint32_t wait_ms)
{
	enum live_news news;

	if (!view->live)
		return view->has_ended ? LIVE_NOTHING : read_file(view);
	news = live_wait(view->live, fd, wait_ms, take_record, view);
	view->has_ended |= news == LIVE_END;
	if (news == LIVE_TICK) /* others take from it, too */
		view->watch.report.left_bytes = memory_left_bytes(live_pid(view->live));
	if (news == LIVE_FAILED && view->watch.decode.why[0])
		(void)fprintf(stderr, "leakwatch-snapshot: cannot read process %s: %s\n", view->name,
			view->watch.decode.why);
	return news;
}

/* ---- what there is to show ---- */

enum { END_BYTES = 64 };

/* "exited, status 3"; "" of one that lives. */
static const char *say_end(const struct model *model, char out[END_BYTES])
{
	const char *end = state_end(model);

	if (end && model->hello.end_kind != LW_END_NONE && model->hello.exit_status >= 0)
		(void)snprintf(out, END_BYTES, "%s, status %d", end, model->hello.exit_status);
	else
		(void)snprintf(out, END_BYTES, "%s", end ? end : "");
	return out;
}

static void say_how(const struct view *view, char how[160])
{
	const struct live_status *status = view->live ? live_status(view->live) : NULL;
	const char *stopped = status && strchr("tT", status->task) ? ", stopped" : "";
	char end[END_BYTES];

	(void)say_end(view->watch.decode.model, end);
	if (!status)
		(void)snprintf(how, 160, "[saved in %.60s%s%s%s]", view->name, view->is_cut ? ", cut short" : "",
			*end ? ": it " : "", end);
	else if (status->way == LIVE_ENDED)
		(void)snprintf(how, 160, "[%s]", end);
	else if (status->way == LIVE_REGION)
		(void)snprintf(how, 160, "[read from its region: %s]", status->why);
	else
		(void)snprintf(how, 160, "[%s%s]", status->way == LIVE_STREAM ? "live" : "asking", stopped);
}

void view_head(struct view *view, struct lines_head *head, char how[160])
{
	const struct live_status *status = view->live ? live_status(view->live) : NULL;
	const struct watch *watch = &view->watch;
	const struct model *model = watch->decode.model;
	const uint64_t *dropped = model->totals.dropped;

	say_how(view, how);
	*head = (struct lines_head){.pid = status ? (int)live_pid(view->live) : model->hello.pid,
		.program = model_text(model, LW_TEXT_EXE),
		.how = how,
		.age_ns = watch->at_ns,
		.interval_ms = view->interval_ms,
		.bytes = watch->totals.bytes,
		.blocks = watch->totals.blocks,
		.peak_bytes = watch->totals.peak_bytes,
		.rss_bytes = status ? status->rss_bytes : 0,
		.nr_sites = watch->totals.nr_sites,
		.bytes_per_s = watch->totals.bytes_per_s,
		.allocs_per_s = watch->totals.allocs_per_s,
		.since_bytes = watch->totals.since_bytes,
		.since_ns = watch->at_ns - watch->base_ns,
		.nr_lost = status ? status->nr_lost + status->nr_garbage : model->nr_lost_messages};
	for (size_t i = 0; i < sizeof(model->totals.dropped) / sizeof(dropped[0]); i++)
		head->nr_dropped += dropped[i];
	for (size_t i = 0; i < model->nr_events; i++) {
		head->nr_mismatches += model->events[i].what == LW_EVENT_MISMATCH;
		head->nr_errors += model->events[i].what != LW_EVENT_MISMATCH;
	}
}

void view_row(struct view *view, uint32_t site, struct lines_row *row)
{
	struct watch *watch = &view->watch;
	const struct model_site *now = &watch->decode.model->sites[site];
	const struct watch_site *judged = watch_judge(watch, site);
	size_t nr = watch->nr_samples < LINES_TREND ? watch->nr_samples : LINES_TREND;

	*row = (struct lines_row){.bytes = now->live_bytes,
		.blocks = now->live_blocks,
		.share = watch->totals.bytes ? (double)now->live_bytes / (double)watch->totals.bytes : 0,
		.change_bytes = watch->nr_ticks > 1 ? (double)judged->change_bytes : NAN,
		.since_bytes = (int64_t)(now->live_bytes - judged->base_bytes),
		.bytes_per_s = watch_slope(watch, site),
		.oldest_ms = watch_oldest_ms(watch, site),
		.has_lost = watch_is_lost(watch, site),
		.verdict = !judged->is_judged ? "..."
			   : judged->judged.rule ? "(hidden)"
						: verdict_name(watch_verdict(watch, site)),
		.function = judged->function,
		.file = judged->file,
		.module = judged->module,
		.line = judged->line,
		.nr_trend = nr};
	/* all samples, spread over the room there is: the whole time, not only its end */
	for (size_t i = 0; i < nr; i++)
		row->trend[i] = watch_at(watch, site, nr > 1 ? i * (watch->nr_samples - 1) / (nr - 1) : 0);
}

bool view_reason(struct view *view, uint32_t site, char *out, size_t out_bytes)
{
	struct watch *watch = &view->watch;
	struct trend trend = {.growth = *watch_growth(watch, site)};
	const struct watch_site *judged = watch_judge(watch, site);
	char why[TREND_TEXT_BYTES], outlook[TREND_TEXT_BYTES];

	if (judged->is_judged && judged->judged.reason) {
		(void)snprintf(out, out_bytes, "kept by %s", judged->judged.reason);
	} else {
		trend_text(why, &trend);
		trend_outlook(outlook, &trend.growth, watch->report.left_bytes);
		(void)snprintf(out, out_bytes, "%s%s%s", why, *outlook ? "; " : "", outlook);
	}
	return out[0] != '\0';
}
