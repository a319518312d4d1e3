/* SPDX-License-Identifier: MIT */
/* json_sites.c - sites, and wrong releases, of the JSON report. */
#include "snapshot/report/json_parts.h"

#include "snapshot/alloc.h"
#include "snapshot/model/libc_names.h"
#include "snapshot/report/trend_text.h"
#include "snapshot/report/json_holder.h"

static void set_hint(json_t *out, const char *key, const struct model_site *site)
{
	json_t *hint;

	if (!site || !site->hint_file)
		return;
	hint = json_object();
	json_object_set_new(hint, "file", json_text(site->hint_file));
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

static void set_trend(struct json_writer *w, json_t *out, const struct report_site *judged)
{
	const struct trend *trend = judged->trend;
	char text[TREND_TEXT_BYTES];

	if (!trend)
		return;
	if (trend->held_blocks) {
		json_object_set_new(out, "held_bytes", json_number(trend->held_bytes));
		json_object_set_new(out, "held_blocks", json_number(trend->held_blocks));
	}
	if (trend->growth.kind == GROWTH_STEADY)
		return;
	if (!judged->reason)
		json_object_set_new(out, "reason",
			json_text(trend_text(text, trend)));
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

static json_t *make_site(struct json_writer *w, const struct report_site *judged)
{
	const struct model_site *site = judged->site;
	json_t *out = json_object(), *examples;
	char plain[64];

	json_object_set_new(out, "id", json_integer(site->id));
	json_object_set_new(out, "kind", json_text(model_kind_name(site->kind)));
	json_object_set_new(out, "verdict", json_text(verdict_name(judged->verdict)));
	if (judged->reason)
		json_object_set_new(out, "reason", json_text(judged->reason));
	json_object_set_new(out, "bytes", json_number(judged->bytes));
	json_object_set_new(out, "blocks", json_number(judged->blocks));
	if (judged->lost.blocks + judged->indirect.blocks && judged->verdict != VERDICT_LOST &&
		judged->verdict != VERDICT_INDIRECT) {
		json_object_set_new(out, "lost_bytes", json_number(judged->lost.bytes));
		json_object_set_new(out, "lost_blocks", json_number(judged->lost.blocks));
		json_object_set_new(out, "indirect_bytes", json_number(judged->indirect.bytes));
		json_object_set_new(out, "indirect_blocks", json_number(judged->indirect.blocks));
	}
	if (judged->lost.blocks && site->scan.dragged_blocks) {
		json_object_set_new(out, "dragged_bytes", json_number(site->scan.dragged_bytes));
		json_object_set_new(out, "dragged_blocks", json_number(site->scan.dragged_blocks));
	}
	set_trend(w, out, judged);
	json_object_set_new(out, "total_bytes", json_number(site->count.alloc_bytes));
	json_object_set_new(out, "total_blocks", json_number(site->count.alloc_blocks));
	if (site->oldest_ms != UINT32_MAX)
		json_object_set_new(out, "oldest_s",
			json_real((double)report_age_ms(w->report, site->oldest_ms) / 1e3));
	json_object_set_new(out, "first_s", json_real(site->first_ms / 1e3));
	if (judged->through) {
		libc_names_plain(judged->through, plain, sizeof(plain));
		json_object_set_new(out, "through", json_text(plain));
	}
	set_hint(out, "hint", site);
	if (site->flags & LW_SITE_TRUNCATED)
		json_object_set_new(out, "truncated", json_true());
	json_object_set_new(out, "frames", json_stack(w, site));
	examples = json_holders(w->report, judged);
	if (examples)
		json_object_set_new(out, "examples", examples);
	return out;
}

/* Leaks and runtime memory; what was suppressed stands in "suppressions". */
json_t *json_sites(struct json_writer *w)
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

static json_t *make_event(struct json_writer *w, const struct model_event *event)
{
	const struct model_site *freed = site_at(w->report->model, event->free_site);
	const struct model_site *allocated = site_at(w->report->model, event->alloc_site);
	uint32_t align_log2 = event->flags >> LW_EVENT_ALIGN_AT & 63;
	json_t *out = json_object();

	if (event->what != LW_EVENT_MISMATCH)
		json_object_set_new(out, "what", json_text(error_name(event->what)));
	if (allocated && allocated->kind)
		json_object_set_new(out, "alloc_kind", json_text(model_kind_name(allocated->kind)));
	if (freed && freed->kind)
		json_object_set_new(out, "free_kind", json_text(model_kind_name(freed->kind)));
	if (event->what != LW_EVENT_UNKNOWN_FREE &&
		(event->bytes || event->what != LW_EVENT_DOUBLE_FREE))
		json_object_set_new(out, "bytes", json_number(event->bytes));
	if (event->flags & LW_EVENT_COOKIE)
		json_object_set_new(out, "cookie", json_number(event->expected));
	if (event->flags & LW_EVENT_UNSURE)
		json_object_set_new(out, "possibly", json_true());
	if (align_log2)
		json_object_set_new(out, "alignment", json_number(UINT64_C(1) << align_log2));
	if (event->what == LW_EVENT_SIZE_MISMATCH || event->what == LW_EVENT_ALIGNMENT_MISMATCH)
		json_object_set_new(out, "told", json_number(event->expected));
	json_object_set_new(out, "count", json_number(event->count));
	set_hint(out, "hint", freed);
	set_hint(out, "alloc_hint", allocated);
	if (allocated && allocated->nr_frames)
		json_object_set_new(out, "alloc_frames", json_stack(w, allocated));
	if (freed)
		json_object_set_new(out, "free_frames", json_stack(w, freed));
	return out;
}

json_t *json_events(struct json_writer *w, bool is_mismatch)
{
	const struct model *model = w->report->model;
	json_t *out = json_array();

	for (size_t i = 0; i < model->nr_events; i++)
		if (!model->events[i].is_rejected &&
			(model->events[i].what == LW_EVENT_MISMATCH) == is_mismatch)
			json_array_append_new(out, make_event(w, &model->events[i]));
	return out;
}
