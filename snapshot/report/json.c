/* SPDX-License-Identifier: MIT */
/*
 * json.c - the report as JSON, schema 1: keys may be added, none is ever removed or changed.
 *
 * Unknown members are left out, so a reader need not know what stands for "unknown". Byte strings
 * that are not UTF-8 (a path may be anything) keep what is valid; each other byte becomes U+FFFD.
 *
 * The same address stands in thousands of stacks. Its frames are built once and shared by
 * reference in the tree; that makes a report of ten thousand sites a matter of writing, not of
 * building.
 */
#include "snapshot/report/report.h"

#include <inttypes.h>
#include <jansson.h>

#include "snapshot/alloc.h"
#include "snapshot/model/libc_names.h"
#include "snapshot/report/trend_text.h"

/* The frames of one pc, as shared values. */
struct cached {
	uint64_t pc; /* 0: empty */
	uint32_t module;
	uint32_t place; /* in the stack: inlined frames of one pc follow each other */
	json_t *frame;
};

struct writer {
	struct report *report;
	struct report_stack stack;
	struct cached *cache; /* open hash, a power of two */
	size_t nr_cached, max_cached;
};

/* How many bytes a valid UTF-8 character at text has; 0: not valid. */
static size_t utf8_bytes(const unsigned char *text)
{
	size_t nr = text[0] < 0x80	 ? 1
		    : text[0] >> 5 == 6	 ? 2
		    : text[0] >> 4 == 14 ? 3
		    : text[0] >> 3 == 30 ? 4
					 : 0;
	uint32_t code = nr > 1 ? text[0] & (0x7fu >> nr) : text[0];
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	for (size_t i = 1; i < nr; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[nr] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : nr;
}

static json_t *string(const char *text)
{
	json_t *value = json_string(text);
	size_t used = 0;
	char *clean;

	if (value)
		return value;
	clean = alloc_array(strlen(text) * 3 + 1, 1);
	while (*text) {
		size_t nr = utf8_bytes((const unsigned char *)text);

		memcpy(clean + used, nr ? text : "\xef\xbf\xbd", nr ? nr : 3);
		used += nr ? nr : 3;
		text += nr ? nr : 1;
	}
	value = json_string(clean);
	free(clean);
	return value;
}

static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *hex(uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *build_id(const struct model_module *module)
{
	char text[2 * LW_BUILD_ID_BYTES + 1] = "";

	for (unsigned i = 0; i < module->build_id_bytes; i++)
		(void)snprintf(text + (size_t)2 * i, 3, "%02x", module->build_id[i]);
	return json_string(text);
}

/* ---- frames ---- */

static json_t *make_frame(const struct report_frame *frame)
{
	const struct symbol_frame *symbol = frame->symbol;
	json_t *out = json_object();

	json_object_set_new(out, "pc", hex(frame->pc));
	if (frame->module) {
		json_object_set_new(out, "module", string(frame->module->path));
		if (frame->module->build_id_bytes)
			json_object_set_new(out, "build_id", build_id(frame->module));
		json_object_set_new(out, "offset", hex(frame->offset));
	}
	if (symbol->function)
		json_object_set_new(out, "function", string(symbol->function));
	if (symbol->file)
		json_object_set_new(out, "file", string(symbol->file));
	if (symbol->line)
		json_object_set_new(out, "line", json_integer(symbol->line));
	if (symbol->column)
		json_object_set_new(out, "column", json_integer(symbol->column));
	json_object_set_new(out, "inlined", json_boolean(symbol->inlined));
	return out;
}

static struct cached *find_cached(struct writer *w, uint64_t pc, uint32_t module, uint32_t place)
{
	uint64_t hash = (pc * 31 + module) * 31 + place;
	size_t slot = (hash * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (w->max_cached - 1);

	while (w->cache[slot].frame &&
		(w->cache[slot].pc != pc || w->cache[slot].module != module ||
			w->cache[slot].place != place))
		slot = (slot + 1) & (w->max_cached - 1);
	return &w->cache[slot];
}

static void grow_cache(struct writer *w)
{
	struct cached *old = w->cache;
	size_t nr_old = w->max_cached;

	w->max_cached = nr_old ? nr_old * 2 : 4096;
	w->cache = alloc_array(w->max_cached, sizeof(*w->cache));
	for (size_t i = 0; i < nr_old; i++)
		if (old[i].frame)
			*find_cached(w, old[i].pc, old[i].module, old[i].place) = old[i];
	free(old);
}

/* A new reference to the frame's value. */
static json_t *shared_frame(struct writer *w, const struct report_frame *frame, uint32_t place)
{
	struct cached *found;

	if (w->nr_cached * 2 >= w->max_cached)
		grow_cache(w);
	found = find_cached(w, frame->pc, frame->module_id, place);
	if (!found->frame) {
		*found = (struct cached){frame->pc, frame->module_id, place, make_frame(frame)};
		w->nr_cached++;
	}
	return json_incref(found->frame);
}

static json_t *make_stack(struct writer *w, const struct model_site *site)
{
	json_t *out = json_array();
	uint32_t place = 0;

	report_stack(w->report, site, &w->stack);
	for (size_t i = 0; i < w->stack.nr_frames; i++) {
		const struct report_frame *frame = &w->stack.frames[i];

		/* the frames of one pc: each but the last is inlined into the next */
		place = i && w->stack.frames[i - 1].symbol->inlined ? place + 1 : 0;
		json_array_append_new(out, shared_frame(w, frame, place));
	}
	return out;
}

/* ---- sites and events ---- */

static void set_hint(json_t *out, const char *key, const struct model_site *site)
{
	json_t *hint;

	if (!site || !site->hint_file)
		return;
	hint = json_object();
	json_object_set_new(hint, "file", string(site->hint_file));
	json_object_set_new(hint, "line", json_integer(site->hint_line));
	json_object_set_new(out, key, hint);
}

/* Seconds after the start, and bytes. */
static json_t *make_history(const struct trend *trend)
{
	json_t *out = json_array();

	for (size_t i = 0; i < trend->nr_points; i++)
		json_array_append_new(
			out, json_pack("[f,I]", trend->points[i].s, (json_int_t)trend->points[i].bytes));
	return out;
}

static void set_trend(struct writer *w, json_t *out, const struct report_site *judged)
{
	const struct trend *trend = judged->trend;
	char text[TREND_TEXT_BYTES];

	if (!trend)
		return;
	if (trend->held_blocks) {
		json_object_set_new(out, "held_bytes", integer(trend->held_bytes));
		json_object_set_new(out, "held_blocks", integer(trend->held_blocks));
	}
	if (trend->growth.kind == GROWTH_STEADY)
		return;
	if (!judged->reason)
		json_object_set_new(out, "reason",
			string(trend_text(text, trend,
				(double)w->report->model->hello.seconds_ns / 1e9)));
	json_object_set_new(out, "slope_bytes_per_s", json_real(trend->growth.bytes_per_s));
	json_object_set_new(out, "trend_p", json_real(trend->growth.p));
	json_object_set_new(out,
		trend->growth.kind == GROWTH_GROWING ? "growing_since_s" : "flat_since_s",
		json_real(trend->growth.since_s));
	if (trend->growth.kind == GROWTH_GROWING && w->report->left_bytes)
		json_object_set_new(out, "memory_lasts_s",
			json_real((double)w->report->left_bytes / trend->growth.bytes_per_s));
	json_object_set_new(out, "history", make_history(trend));
}

static json_t *make_site(struct writer *w, const struct report_site *judged)
{
	const struct model_site *site = judged->site;
	json_t *out = json_object();
	char plain[64];

	json_object_set_new(out, "id", json_integer(site->id));
	json_object_set_new(out, "kind", string(model_kind_name(site->kind)));
	json_object_set_new(out, "verdict", string(verdict_name(judged->verdict)));
	if (judged->reason)
		json_object_set_new(out, "reason", string(judged->reason));
	json_object_set_new(out, "bytes", integer(judged->bytes));
	json_object_set_new(out, "blocks", integer(judged->blocks));
	if (judged->lost.blocks + judged->indirect.blocks && judged->verdict != VERDICT_LOST &&
		judged->verdict != VERDICT_INDIRECT) {
		json_object_set_new(out, "lost_bytes", integer(judged->lost.bytes));
		json_object_set_new(out, "lost_blocks", integer(judged->lost.blocks));
		json_object_set_new(out, "indirect_bytes", integer(judged->indirect.bytes));
		json_object_set_new(out, "indirect_blocks", integer(judged->indirect.blocks));
	}
	if (judged->lost.blocks && site->scan.dragged_blocks) {
		json_object_set_new(out, "dragged_bytes", integer(site->scan.dragged_bytes));
		json_object_set_new(out, "dragged_blocks", integer(site->scan.dragged_blocks));
	}
	set_trend(w, out, judged);
	json_object_set_new(out, "total_bytes", integer(site->count.alloc_bytes));
	json_object_set_new(out, "total_blocks", integer(site->count.alloc_blocks));
	if (site->oldest_ms != UINT32_MAX)
		json_object_set_new(out, "oldest_s",
			json_real((double)report_age_ms(w->report, site->oldest_ms) / 1e3));
	json_object_set_new(out, "first_s", json_real(site->first_ms / 1e3));
	if (judged->through) {
		libc_names_plain(judged->through, plain, sizeof(plain));
		json_object_set_new(out, "through", string(plain));
	}
	set_hint(out, "hint", site);
	if (site->flags & LW_SITE_TRUNCATED)
		json_object_set_new(out, "truncated", json_true());
	json_object_set_new(out, "frames", make_stack(w, site));
	return out;
}

/* Leaks and runtime memory; what was suppressed stands in "suppressions". */
static json_t *make_sites(struct writer *w)
{
	json_t *out = json_array();

	for (size_t i = 0; i < w->report->nr_sites; i++) {
		const struct report_site *judged = &w->report->sites[i];

		if (!judged->rule && judged->bytes >= w->report->options->min_bytes)
			json_array_append_new(out, make_site(w, judged));
	}
	return out;
}

static const struct model_site *site_at(const struct model *model, uint32_t index)
{
	return index == MODEL_NO_SITE ? NULL : &model->sites[index];
}

static const char *error_name(uint32_t what)
{
	static const char *const names[LW_NR_EVENT_KINDS] = {[LW_EVENT_MISMATCH] = "mismatch",
		[LW_EVENT_DOUBLE_FREE] = "double-free",
		[LW_EVENT_UNKNOWN_FREE] = "unknown-free",
		[LW_EVENT_SIZE_MISMATCH] = "size-mismatch",
		[LW_EVENT_ALIGNMENT_MISMATCH] = "alignment-mismatch"};

	return names[what];
}

static json_t *make_event(struct writer *w, const struct model_event *event)
{
	const struct model_site *freed = site_at(w->report->model, event->free_site);
	const struct model_site *allocated = site_at(w->report->model, event->alloc_site);
	uint32_t align_log2 = event->flags >> LW_EVENT_ALIGN_AT & 63;
	json_t *out = json_object();

	if (event->what != LW_EVENT_MISMATCH)
		json_object_set_new(out, "what", string(error_name(event->what)));
	if (allocated && allocated->kind)
		json_object_set_new(out, "alloc_kind", string(model_kind_name(allocated->kind)));
	if (freed && freed->kind)
		json_object_set_new(out, "free_kind", string(model_kind_name(freed->kind)));
	if (event->what != LW_EVENT_UNKNOWN_FREE &&
		(event->bytes || event->what != LW_EVENT_DOUBLE_FREE))
		json_object_set_new(out, "bytes", integer(event->bytes));
	if (event->flags & LW_EVENT_COOKIE)
		json_object_set_new(out, "cookie", integer(event->expected));
	if (event->flags & LW_EVENT_UNSURE)
		json_object_set_new(out, "possibly", json_true());
	if (align_log2)
		json_object_set_new(out, "alignment", integer(UINT64_C(1) << align_log2));
	if (event->what == LW_EVENT_SIZE_MISMATCH || event->what == LW_EVENT_ALIGNMENT_MISMATCH)
		json_object_set_new(out, "told", integer(event->expected));
	json_object_set_new(out, "count", integer(event->count));
	set_hint(out, "hint", freed);
	set_hint(out, "alloc_hint", allocated);
	if (allocated && allocated->nr_frames)
		json_object_set_new(out, "alloc_frames", make_stack(w, allocated));
	if (freed)
		json_object_set_new(out, "free_frames", make_stack(w, freed));
	return out;
}

static json_t *make_events(struct writer *w, bool is_mismatch)
{
	const struct model *model = w->report->model;
	json_t *out = json_array();

	for (size_t i = 0; i < model->nr_events; i++)
		if (!model->events[i].is_rejected &&
			(model->events[i].what == LW_EVENT_MISMATCH) == is_mismatch)
			json_array_append_new(out, make_event(w, &model->events[i]));
	return out;
}

/* ---- the whole ---- */

static json_t *make_summary(const struct report *report)
{
	const struct lw_wire_totals *totals = &report->model->totals;
	json_t *out = json_object();

	json_object_set_new(out, "live_bytes", integer(report->live.bytes));
	json_object_set_new(out, "live_blocks", integer(report->live.blocks));
	json_object_set_new(out, "peak_bytes", integer(report->peak_bytes));
	json_object_set_new(out, "peak_is_exact",
		json_boolean(!(report->model->hello.flags & LW_REGION_PEAK_SAMPLED)));
	json_object_set_new(out, "total_allocs", integer(report->total_allocs));
	json_object_set_new(out, "total_frees", integer(report->total_frees));
	json_object_set_new(out, "total_bytes", integer(report->total_bytes));
	json_object_set_new(out, "dropped", integer(report->nr_dropped));
	json_object_set_new(out, "sites", integer(report->nr_alloc_sites));
	json_object_set_new(out, "inherited_blocks", integer(totals->inherited_blocks));
	json_object_set_new(out, "leaked_bytes", integer(report->leaked.bytes));
	json_object_set_new(out, "leaked_blocks", integer(report->leaked.blocks));
	json_object_set_new(out, "reachable_bytes", integer(report->reachable.bytes));
	json_object_set_new(out, "reachable_blocks", integer(report->reachable.blocks));
	json_object_set_new(out, "lost_bytes", integer(report->lost.bytes));
	json_object_set_new(out, "lost_blocks", integer(report->lost.blocks));
	json_object_set_new(out, "indirect_bytes", integer(report->indirect.bytes));
	json_object_set_new(out, "indirect_blocks", integer(report->indirect.blocks));
	json_object_set_new(out, "held_bytes", integer(report->held.bytes));
	json_object_set_new(out, "held_blocks", integer(report->held.blocks));
	json_object_set_new(out, "runtime_bytes", integer(report->runtime.bytes));
	json_object_set_new(out, "runtime_blocks", integer(report->runtime.blocks));
	json_object_set_new(out, "suppressed_bytes", integer(report->suppressed.bytes));
	json_object_set_new(out, "suppressed_blocks", integer(report->suppressed.blocks));
	json_object_set_new(out, "own_bytes", integer(totals->own_bytes));
	json_object_set_new(out, "report_s",
		json_real((double)(totals->report_ns + report_now_ns() - report->began_ns) / 1e9));
	if (report->missing)
		json_object_set_new(out, "incomplete", string(report->missing));
	if (report->model->nr_bad)
		json_object_set_new(out, "damaged_records", integer(report->model->nr_bad));
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

	json_object_set_new(out, "state", string(states[scan->state]));
	if (scan->state == LW_SCAN_REFUSED || scan->state == LW_SCAN_FAILED)
		json_object_set_new(out, "reason", string(model_scan_reason(scan->why)));
	if (scan->state != LW_SCAN_DONE)
		return out;
	json_object_set_new(out, "at_s", json_real((double)scan->began_ns / 1e9));
	json_object_set_new(out, "took_s", json_real((double)scan->took_ns / 1e9));
	json_object_set_new(out, "cpu_s", json_real((double)scan->cpu_ns / 1e9));
	json_object_set_new(out, "pause_s", json_real((double)scan->pause_ns / 1e9));
	json_object_set_new(out, "approximate", json_boolean(scan->flags & LW_SCAN_APPROXIMATE));
	json_object_set_new(out, "confirmed", json_boolean(scan->flags & LW_SCAN_CONFIRMED));
	json_object_set_new(out, "blocks", integer(scan->live_blocks));
	json_object_set_new(out, "bytes", integer(scan->live_bytes));
	json_object_set_new(out, "swept_bytes", integer(scan->swept_bytes));
	json_object_set_new(out, "used_bytes", integer(scan->used_bytes));
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
				out, names[i], integer(report->model->totals.dropped[i]));
	return out;
}

static json_t *make_held(const struct model_held *held)
{
	json_t *out = json_object();

	json_object_set_new(out, "bytes", integer(held->bytes));
	json_object_set_new(out, "blocks", integer(held->blocks));
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

		json_object_set_new(one, "name", string(mark->name));
		json_object_set_new(one, "count", integer(mark->count));
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
		json_object_set_new(one, "pattern", string(rule->pattern));
		json_object_set_new(one, "sites", integer(rule->nr_sites));
		json_object_set_new(one, "blocks", integer(rule->nr_blocks));
		json_object_set_new(one, "bytes", integer(rule->nr_bytes));
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
		json_array_append_new(out, string(text + at));
	return out;
}

static json_t *make_report(struct writer *w)
{
	const struct report *report = w->report;
	const struct lw_wire_hello *hello = &report->model->hello;
	json_t *out = json_object();

	json_object_set_new(out, "leakwatch", string(LW_VERSION));
	json_object_set_new(out, "schema", json_integer(1));
	json_object_set_new(out, "pid", json_integer(hello->pid));
	json_object_set_new(out, "ppid", json_integer(hello->ppid));
	json_object_set_new(out, "exe", string(model_text(report->model, LW_TEXT_EXE)));
	json_object_set_new(out, "cmdline", make_cmdline(report->model));
	json_object_set_new(out, "state", string(report->state));
	if (report->signal)
		json_object_set_new(out, "signal", json_integer(report->signal));
	if (hello->exit_status >= 0 && strcmp(report->state, "live"))
		json_object_set_new(out, "exit_status", json_integer(hello->exit_status));
	json_object_set_new(out, "started", json_real((double)hello->started_real_ns / 1e9));
	json_object_set_new(out, "seconds", json_real((double)hello->seconds_ns / 1e9));
	if (report->model->has_scan)
		json_object_set_new(out, "scan", make_scan(report->model));
	json_object_set_new(out, "sites", make_sites(w));
	json_object_set_new(out, "mismatches", make_events(w, true));
	json_object_set_new(out, "errors", make_events(w, false));
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
	struct writer w = {.report = report};
	json_t *tree = make_report(&w);
	bool is_written = tree && json_dumpf(tree, out, JSON_COMPACT) == 0;

	json_decref(tree);
	for (size_t i = 0; i < w.max_cached; i++)
		if (w.cache[i].frame)
			json_decref(w.cache[i].frame);
	free(w.cache);
	free(w.stack.frames);
	return is_written && fputc('\n', out) != EOF;
}
