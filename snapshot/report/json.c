/* SPDX-License-Identifier: MIT */
/*
 * json.c - the report as JSON, schema 1: keys may be added, none is ever removed or changed.
 *
 * Unknown members are left out, so a reader need not know what stands for "unknown".
 */
#include "snapshot/report/json_parts.h"

#include "snapshot/alloc.h"

static json_t *make_summary(const struct report *report)
{
	const struct lw_wire_totals *totals = &report->model->totals;
	/* with lost and indirect ones, by what the search saw, where it saw the end */
	const struct report_sum *reachable = report_is_scan_fresh(report) ? &report->pointed : &report->reachable;
	json_t *out = json_object();

	json_object_set_new(out, "live_bytes", json_number(report->live.bytes));
	json_object_set_new(out, "live_blocks", json_number(report->live.blocks));
	json_object_set_new(out, "peak_bytes", json_number(report->peak_bytes));
	json_object_set_new(out, "peak_is_exact",
		json_boolean(!(report->model->hello.flags & LW_REGION_PEAK_SAMPLED)));
	json_object_set_new(out, "total_allocs", json_number(report->total_allocs));
	json_object_set_new(out, "total_frees", json_number(report->total_frees));
	json_object_set_new(out, "total_bytes", json_number(report->total_bytes));
	json_object_set_new(out, "dropped", json_number(report->nr_dropped));
	json_object_set_new(out, "sites", json_number(report->nr_alloc_sites));
	json_object_set_new(out, "inherited_blocks", json_number(totals->inherited_blocks));
	json_object_set_new(out, "leaked_bytes", json_number(report->leaked.bytes));
	json_object_set_new(out, "leaked_blocks", json_number(report->leaked.blocks));
	json_object_set_new(out, "reachable_bytes", json_number(reachable->bytes));
	json_object_set_new(out, "reachable_blocks", json_number(reachable->blocks));
	json_object_set_new(out, "lost_bytes", json_number(report->lost.bytes));
	json_object_set_new(out, "lost_blocks", json_number(report->lost.blocks));
	json_object_set_new(out, "indirect_bytes", json_number(report->indirect.bytes));
	json_object_set_new(out, "indirect_blocks", json_number(report->indirect.blocks));
	json_object_set_new(out, "held_bytes", json_number(report->held.bytes));
	json_object_set_new(out, "held_blocks", json_number(report->held.blocks));
	json_object_set_new(out, "runtime_bytes", json_number(report->runtime.bytes));
	json_object_set_new(out, "runtime_blocks", json_number(report->runtime.blocks));
	json_object_set_new(out, "suppressed_bytes", json_number(report->suppressed.bytes));
	json_object_set_new(out, "suppressed_blocks", json_number(report->suppressed.blocks));
	json_object_set_new(out, "own_bytes", json_number(totals->own_bytes));
	if (report->options->sample)
		json_object_set_new(out, "sample_bytes", json_number(report->options->sample));
	json_object_set_new(out, "report_s",
		json_real((double)(totals->report_ns + report_now_ns() - report->began_ns) / 1e9));
	if (report->missing)
		json_object_set_new(out, "incomplete", json_text(report->missing));
	if (report->model->nr_bad)
		json_object_set_new(out, "damaged_records", json_number(report->model->nr_bad));
	return out;
}

static json_t *make_scan(const struct model *model)
{
	static const char *const states[LW_NR_SCAN_STATES] = {[LW_SCAN_NONE] = "none",
		[LW_SCAN_RUNNING] = "running",
		[LW_SCAN_DONE] = "done",
		[LW_SCAN_REFUSED] = "refused",
		[LW_SCAN_FAILED] = "failed"};
	const struct lw_wire_scan *scan = &model->scan;
	json_t *out = json_object();

	json_object_set_new(out, "state", json_text(states[scan->state]));
	if (scan->state == LW_SCAN_REFUSED || scan->state == LW_SCAN_FAILED)
		json_object_set_new(out, "reason", json_text(model_scan_reason(scan->why)));
	if (scan->state != LW_SCAN_DONE)
		return out;
	json_object_set_new(out, "at_s", json_real((double)scan->began_ns / 1e9));
	json_object_set_new(out, "took_s", json_real((double)scan->took_ns / 1e9));
	json_object_set_new(out, "cpu_s", json_real((double)scan->cpu_ns / 1e9));
	json_object_set_new(out, "pause_s", json_real((double)scan->pause_ns / 1e9));
	json_object_set_new(out, "approximate", json_boolean(scan->flags & LW_SCAN_APPROXIMATE));
	json_object_set_new(out, "confirmed", json_boolean(scan->flags & LW_SCAN_CONFIRMED));
	json_object_set_new(out, "blocks", json_number(scan->live_blocks));
	json_object_set_new(out, "bytes", json_number(scan->live_bytes));
	json_object_set_new(out, "swept_bytes", json_number(scan->swept_bytes));
	json_object_set_new(out, "used_bytes", json_number(scan->used_bytes));
	return out;
}

static json_t *make_dropped(const struct report *report)
{
	static const char *const names[LW_NR_DROPS] = {"sites", "blocks", "reentrant", "counters",
		"modules", "events", "stale", "untracked", "hints", "marks"};
	json_t *out = json_object();

	for (unsigned i = 0; i < LW_NR_DROPS; i++)
		if (report->model->totals.dropped[i])
			json_object_set_new(
				out, names[i], json_number(report->model->totals.dropped[i]));
	return out;
}

static json_t *make_held(const struct model_held *held)
{
	json_t *out = json_object();

	json_object_set_new(out, "bytes", json_number(held->bytes));
	json_object_set_new(out, "blocks", json_number(held->blocks));
	json_object_set_new(out, "at_s", json_real(held->at_ms / 1e3));
	return out;
}

static json_t *make_marks(const struct model *model)
{
	json_t *out = json_array();

	for (size_t i = 0; i < model->nr_marks; i++) {
		const struct model_mark *mark = &model->marks[i];
		double nr = mark->count > 1 ? (double)(mark->count - 1) : 1;
		json_t *one = json_object();

		json_object_set_new(one, "name", json_text(mark->name));
		json_object_set_new(one, "count", json_number(mark->count));
		json_object_set_new(one, "first", make_held(&mark->first));
		json_object_set_new(one, "last", make_held(&mark->last));
		json_object_set_new(one, "bytes_per_mark",
			json_real((double)(int64_t)(mark->last.bytes - mark->first.bytes) / nr));
		json_object_set_new(one, "blocks_per_mark",
			json_real((double)(int64_t)(mark->last.blocks - mark->first.blocks) / nr));
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *make_suppressions(const struct report *report)
{
	json_t *out = json_array();

	for (size_t i = 0; i < report->suppress->nr_rules; i++) {
		const struct suppress_rule *rule = &report->suppress->rules[i];
		json_t *one;

		if (!rule->nr_sites)
			continue;
		one = json_object();
		json_object_set_new(one, "pattern", json_text(rule->pattern));
		json_object_set_new(one, "sites", json_number(rule->nr_sites));
		json_object_set_new(one, "blocks", json_number(rule->nr_blocks));
		json_object_set_new(one, "bytes", json_number(rule->nr_bytes));
		json_array_append_new(out, one);
	}
	return out;
}

static json_t *make_cmdline(const struct model *model)
{
	const char *text = model_text(model, LW_TEXT_CMDLINE);
	size_t nr_bytes = model->texts[LW_TEXT_CMDLINE] ? model->text_bytes[LW_TEXT_CMDLINE] : 0;
	json_t *out = json_array();

	for (size_t at = 0; at < nr_bytes; at += strlen(text + at) + 1)
		json_array_append_new(out, json_text(text + at));
	return out;
}

static json_t *make_report(struct json_writer *w)
{
	const struct report *report = w->report;
	const struct lw_wire_hello *hello = &report->model->hello;
	json_t *out = json_object();

	json_object_set_new(out, "leakwatch", json_text(LW_VERSION));
	json_object_set_new(out, "schema", json_integer(1));
	json_object_set_new(out, "pid", json_integer(hello->pid));
	json_object_set_new(out, "ppid", json_integer(hello->ppid));
	json_object_set_new(out, "exe", json_text(model_text(report->model, LW_TEXT_EXE)));
	json_object_set_new(out, "cmdline", make_cmdline(report->model));
	json_object_set_new(out, "state", json_text(report->state));
	if (report->signal)
		json_object_set_new(out, "signal", json_integer(report->signal));
	if (hello->exit_status >= 0 && strcmp(report->state, "live"))
		json_object_set_new(out, "exit_status", json_integer(hello->exit_status));
	json_object_set_new(out, "started", json_real((double)hello->started_real_ns / 1e9));
	json_object_set_new(out, "seconds", json_real((double)hello->seconds_ns / 1e9));
	if (report->model->has_scan)
		json_object_set_new(out, "scan", make_scan(report->model));
	json_object_set_new(out, "sites", json_sites(w));
	json_object_set_new(out, "mismatches", json_events(w, true));
	json_object_set_new(out, "errors", json_events(w, false));
	if (report->model->nr_marks)
		json_object_set_new(out, "marks", make_marks(report->model));
	json_object_set_new(out, "dropped", make_dropped(report));
	json_object_set_new(out, "suppressions", make_suppressions(report));
	/* last, because it says how long all of it took */
	json_object_set_new(out, "summary", make_summary(report));
	return out;
}

bool report_json(struct report *report, FILE *out)
{
	struct json_writer w = {.report = report};
	json_t *tree = make_report(&w);
	bool is_written = tree && json_dumpf(tree, out, JSON_COMPACT) == 0;

	json_decref(tree);
	json_forget_frames(&w);
	return is_written && fputc('\n', out) != EOF;
}
