/* SPDX-License-Identifier: MIT */
/* watch.c - samples, sums and order of the sites of a watched process; see watch.h. */
#include "snapshot/view/watch.h"

#include <math.h>
#include <stddef.h>

#include "snapshot/alloc.h"

void watch_init(struct watch *watch, struct symbols *symbols, struct suppress *suppress,
	const struct lw_options *options)
{
	*watch = (struct watch){.decode.model = model_new(), .stride = 1, .totals = {.bytes_per_s = NAN, .allocs_per_s = NAN}};
	watch->report = (struct report){.model = watch->decode.model,
		.symbols = symbols,
		.suppress = suppress,
		.options = options,
		.state = "live",
		.began_ns = report_now_ns()};
}

void watch_fini(struct watch *watch)
{
	for (size_t i = 0; i < watch->nr_sites; i++)
		free(watch->sites[i].series);
	free(watch->sites);
	free(watch->stack.frames);
	model_free(watch->decode.model);
}

/* ---- sampling ---- */

static void add_sites(struct watch *watch)
{
	const struct model *model = watch->decode.model;

	while (watch->nr_sites < model->nr_sites) {
		watch->sites = alloc_grow(
			watch->sites, watch->nr_sites, &watch->max_sites, sizeof(*watch->sites));
		/* what is there when we come is the baseline; what comes later grew from nothing */
		watch->sites[watch->nr_sites] = (struct watch_site){0};
		if (!watch->nr_ticks) {
			const struct model_site *site = &model->sites[watch->nr_sites];

			watch->sites[watch->nr_sites].base_bytes = site->live_bytes;
			watch->sites[watch->nr_sites].base_blocks = site->live_blocks;
			watch->sites[watch->nr_sites].last_bytes = site->live_bytes;
		}
		watch->nr_sites++;
	}
}

static void halve(struct watch *watch)
{
	for (size_t i = 0; i < WATCH_SAMPLES / 2; i++)
		watch->at_ms[i] = watch->at_ms[i * 2];
	for (size_t s = 0; s < watch->nr_sites; s++) {
		uint64_t *series = watch->sites[s].series;

		for (size_t i = 0; series && i < WATCH_SAMPLES / 2; i++)
			series[i] = series[i * 2];
	}
	watch->nr_samples = WATCH_SAMPLES / 2;
	watch->stride *= 2;
}

static void add_samples(struct watch *watch, uint64_t at_ns)
{
	const struct model *model = watch->decode.model;

	if (watch->nr_ticks % watch->stride)
		return;
	if (watch->nr_samples == WATCH_SAMPLES)
		halve(watch);
	watch->at_ms[watch->nr_samples] = at_ns / 1000000;
	for (size_t s = 0; s < watch->nr_sites; s++)
		if (watch->sites[s].series)
			watch->sites[s].series[watch->nr_samples] = model->sites[s].live_bytes;
	watch->nr_samples++;
	watch->nr_sampled++;
}

/* The first change of a site: until now it was what it was at the last tick. */
static void begin_series(struct watch *watch, struct watch_site *site)
{
	site->series = alloc_array(WATCH_SAMPLES, sizeof(*site->series));
	for (size_t i = 0; i < watch->nr_samples; i++)
		site->series[i] = site->last_bytes;
}

static void follow_sites(struct watch *watch)
{
	const struct model *model = watch->decode.model;
	struct watch_totals *totals = &watch->totals;

	totals->bytes = totals->blocks = totals->nr_allocs = totals->nr_frees = 0;
	totals->nr_sites = 0;
	for (size_t s = 0; s < watch->nr_sites; s++) {
		struct watch_site *site = &watch->sites[s];
		const struct model_site *now = &model->sites[s];

		totals->bytes += now->live_bytes;
		totals->blocks += now->live_blocks;
		totals->nr_allocs += now->count.alloc_blocks;
		totals->nr_frees += now->count.freed_blocks;
		totals->nr_sites += now->live_blocks > 0;
		site->change_bytes = (int64_t)(now->live_bytes - site->last_bytes);
		if (site->change_bytes && !site->series)
			begin_series(watch, site);
		site->last_bytes = now->live_bytes;
	}
}

/* New modules: who they are, and that a site may have a name now. */
static void follow_modules(struct watch *watch)
{
	struct model *model = watch->decode.model;

	if (watch->nr_modules_known == model->nr_modules_seen)
		return;
	watch->nr_modules_known = model->nr_modules_seen;
	model_match_modules(model);
	report_introduce_modules(&watch->report);
	for (size_t s = 0; s < watch->nr_sites; s++)
		watch->sites[s].is_judged = watch->sites[s].is_judged && watch->sites[s].function;
}

void watch_sample(struct watch *watch, uint64_t at_ns)
{
	struct watch_totals *totals = &watch->totals;
	uint64_t had_bytes = totals->bytes, had_allocs = totals->nr_allocs;
	double seconds = at_ns > watch->at_ns ? (double)(at_ns - watch->at_ns) / 1e9 : 0;

	if (watch->decode.model->is_still && watch->nr_ticks) {
		watch->at_ns = at_ns;
		watch->nr_ticks++;
		return;
	}
	follow_modules(watch);
	add_sites(watch);
	follow_sites(watch);
	if (watch->nr_ticks && seconds > 0) {
		totals->bytes_per_s = ((double)totals->bytes - (double)had_bytes) / seconds;
		totals->allocs_per_s = ((double)totals->nr_allocs - (double)had_allocs) / seconds;
	}
	if (watch->decode.model->totals.peak_bytes > (int64_t)totals->peak_bytes)
		totals->peak_bytes = (uint64_t)watch->decode.model->totals.peak_bytes;
	if (totals->peak_bytes < totals->bytes)
		totals->peak_bytes = totals->bytes;
	watch->at_ns = at_ns;
	add_samples(watch, at_ns);
	if (!watch->nr_ticks)
		watch_reset_baseline(watch);
	watch->nr_ticks++;
	totals->since_bytes = 0;
	for (size_t s = 0; s < watch->nr_sites; s++)
		totals->since_bytes +=
			(int64_t)(watch->decode.model->sites[s].live_bytes - watch->sites[s].base_bytes);
}

bool watch_record(void *context, const struct lw_wire_head *record)
{
	struct watch *watch = context;
	uint64_t nr_ticks = watch->decode.model->nr_ticks;

	if (!decode_record(&watch->decode, record))
		return false;
	if (watch->decode.model->nr_ticks != nr_ticks)
		watch_sample(watch, watch->decode.model->tick_ns);
	return true;
}

void watch_reset_baseline(struct watch *watch)
{
	const struct model *model = watch->decode.model;

	for (size_t s = 0; s < watch->nr_sites; s++) {
		watch->sites[s].base_bytes = model->sites[s].live_bytes;
		watch->sites[s].base_blocks = model->sites[s].live_blocks;
	}
	watch->base_ns = watch->at_ns;
	watch->totals.since_bytes = 0;
}

/* ---- one site ---- */

uint64_t watch_at(const struct watch *watch, size_t site, size_t i)
{
	const struct watch_site *at = &watch->sites[site];

	return at->series ? at->series[i] : at->last_bytes;
}

/* Least squares over all samples. */
double watch_slope(const struct watch *watch, size_t site)
{
	const uint64_t *series = watch->sites[site].series;
	double mean_t = 0, mean_y = 0, up = 0, down = 0;
	size_t nr = watch->nr_samples;

	if (nr < 2)
		return NAN;
	if (!series)
		return 0;
	for (size_t i = 0; i < nr; i++) {
		mean_t += (double)watch->at_ms[i] / (double)nr;
		mean_y += (double)series[i] / (double)nr;
	}
	for (size_t i = 0; i < nr; i++) {
		double t = (double)watch->at_ms[i] - mean_t;

		up += t * ((double)series[i] - mean_y);
		down += t * t;
	}
	return down > 0 ? up / down * 1000 : 0;
}

enum {
	MAX_PAST = 32,	   /* samples from before we came: more are thinned out */
	LEAST_POINTS = 12, /* and the last tells nothing of the next */
};

/* Samples of the history in the region from before our first one. */
static size_t add_past(const struct watch *watch, size_t site, struct growth_point *points)
{
	const struct model_history *past = watch->decode.model->sites[site].history;
	size_t nr_before = 0, nr = 0, step;

	while (past && nr_before < past->nr_samples && past->samples[nr_before].ms < watch->at_ms[0])
		nr_before++;
	step = nr_before / MAX_PAST + 1;
	for (size_t i = 0; i < nr_before; i += step)
		points[nr++] = (struct growth_point){
			(double)past->samples[i].ms / 1000, (double)past->samples[i].bytes};
	return nr;
}

const struct growth *watch_growth(struct watch *watch, size_t place)
{
	struct growth_point points[MAX_PAST + WATCH_SAMPLES];
	struct watch_site *site = &watch->sites[place];
	size_t nr, nr_noted;

	if (site->grown_at == watch->nr_sampled)
		return &site->growth;
	site->grown_at = watch->nr_sampled;
	nr = nr_noted = add_past(watch, place, points);
	for (size_t i = 0; i < watch->nr_samples; i++)
		points[nr++] = (struct growth_point){
			(double)watch->at_ms[i] / 1000, (double)watch_at(watch, place, i)};
	site->growth = (struct growth){.kind = GROWTH_STEADY, .p = 1};
	if (nr > LEAST_POINTS) /* its few points are a short time, not one in which nothing was allocated */
		growth_judge_looks(points, nr, nr_noted, &site->growth);
	return &site->growth;
}

/* By the last search, if there was one. What is lost stays so. */
static struct report_sum lost_of(const struct watch *watch, size_t place)
{
	const struct model *model = watch->decode.model;
	const struct lw_scan_site *found = &model->sites[place].scan;

	if (!model_is_scanned(model))
		return (struct report_sum){0};
	return (struct report_sum){found->lost_bytes + found->indirect_bytes,
		found->lost_blocks + found->indirect_blocks, 1};
}

bool watch_is_lost(struct watch *watch, size_t place)
{
	const struct watch_site *site;

	if (!lost_of(watch, place).blocks)
		return false;
	site = watch_judge(watch, place);
	return !site->is_judged || (site->judged.verdict != VERDICT_RUNTIME && !site->judged.rule);
}

struct report_sum watch_lost(struct watch *watch, uint32_t *most)
{
	struct report_sum all = {0};
	uint64_t most_bytes = 0;

	*most = MODEL_NO_SITE;
	for (size_t s = 0; s < watch->nr_sites; s++) {
		struct report_sum sum = lost_of(watch, s);

		if (!watch_is_lost(watch, s))
			continue;
		all.bytes += sum.bytes;
		all.blocks += sum.blocks;
		all.nr_sites++;
		if (*most == MODEL_NO_SITE || sum.bytes > most_bytes) {
			*most = (uint32_t)s;
			most_bytes = sum.bytes;
		}
	}
	return all;
}

enum verdict watch_verdict(struct watch *watch, size_t place)
{
	const struct watch_site *site = watch_judge(watch, place);
	enum verdict verdict;

	if (!site->is_judged)
		return VERDICT_UNFREED;
	verdict = verdict_with_growth(site->judged.verdict, watch_growth(watch, place)->kind, false);
	if (verdict == VERDICT_GROWING || verdict == VERDICT_RUNTIME || !lost_of(watch, place).blocks)
		return verdict;
	return watch->decode.model->sites[place].scan.lost_blocks ? VERDICT_LOST : VERDICT_INDIRECT;
}

uint64_t watch_oldest_ms(const struct watch *watch, size_t site)
{
	uint32_t born_ms = watch->decode.model->sites[site].oldest_ms;
	uint64_t now_ms = watch->at_ns / 1000000;

	if (born_ms == UINT32_MAX)
		return UINT64_MAX;
	return now_ms > born_ms ? now_ms - born_ms : 0;
}

/* Module and hint are the model's, and a record that comes again may have brought them anew. */
static void refresh_names(const struct watch *watch, const struct model_site *from, struct watch_site *site)
{
	const struct model_module *module = model_module(watch->decode.model, site->module_id);

	site->module = module ? module->path : NULL;
	if (from->hint_file || site->is_hinted) {
		site->is_hinted = from->hint_file != NULL;
		site->file = from->hint_file;
		site->line = from->hint_line;
	}
}

const struct watch_site *watch_judge(struct watch *watch, size_t place)
{
	struct watch_site *site = &watch->sites[place];
	const struct model_site *model_site = &watch->decode.model->sites[place];
	const struct report_frame *frame;

	site->judged.site = model_site; /* the array moves when it grows */
	if (site->is_judged) {
		refresh_names(watch, model_site, site);
		return site;
	}
	if (watch->patience_ns && report_now_ns() >= watch->patience_ns) {
		watch->nr_pending++;
		return site;
	}
	site->is_judged = true;
	site->function = site->file = NULL;
	site->module_id = LW_NO_MODULE;
	report_stack(&watch->report, model_site, &watch->stack);
	report_judge_site(&watch->report, &watch->stack, &site->judged);
	frame = report_own_frame(&watch->stack);
	if (frame) {
		site->function = frame->symbol->function;
		site->file = frame->symbol->file;
		site->line = frame->symbol->line;
		site->module_id = frame->module_id;
	}
	refresh_names(watch, model_site, site);
	return site;
}

/* ---- all of them ---- */

static const char *const sort_names[WATCH_NR_SORTS] = {
	[WATCH_BY_BYTES] = "held",
	[WATCH_BY_BLOCKS] = "blocks",
	[WATCH_BY_CHANGE] = "change",
	[WATCH_BY_SINCE] = "since",
	[WATCH_BY_SLOPE] = "slope",
	[WATCH_BY_AGE] = "oldest",
};

const char *watch_sort_name(enum watch_sort sort)
{
	return sort_names[sort];
}

static double sort_value(const struct watch *watch, size_t site, enum watch_sort sort)
{
	const struct model_site *now = &watch->decode.model->sites[site];

	switch (sort) {
	case WATCH_BY_BLOCKS:
		return (double)now->live_blocks;
	case WATCH_BY_CHANGE:
		return (double)watch->sites[site].change_bytes;
	case WATCH_BY_SINCE:
		return (double)(int64_t)(now->live_bytes - watch->sites[site].base_bytes);
	case WATCH_BY_SLOPE:
		return watch->nr_samples > 1 ? watch_slope(watch, site) : 0;
	case WATCH_BY_AGE:
		return watch_oldest_ms(watch, site) == UINT64_MAX ? -1 : (double)watch_oldest_ms(watch, site);
	default:
		return (double)now->live_bytes;
	}
}

struct entry {
	double value, bytes;
	uint32_t site;
};

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->site < b->site ? -1 : a->site > b->site;
}

size_t watch_order(struct watch *watch, enum watch_sort sort, const char *filter, uint32_t **order,
	size_t *max_order)
{
	struct entry *entries = alloc_array(watch->nr_sites, sizeof(*entries));
	size_t nr = 0;

	watch_filter(watch, filter);
	for (size_t s = 0; s < watch->nr_sites; s++)
		if (watch->decode.model->sites[s].live_blocks && watch_is_wanted(watch, s))
			entries[nr++] = (struct entry){sort_value(watch, s, sort),
				(double)watch->decode.model->sites[s].live_bytes, (uint32_t)s};
	qsort(entries, nr, sizeof(*entries), compare);
	if (nr > *max_order) {
		*max_order = nr;
		*order = alloc_check(reallocarray(*order, nr, sizeof(**order)));
	}
	for (size_t i = 0; i < nr; i++)
		(*order)[i] = entries[i].site;
	free(entries);
	return nr;
}
