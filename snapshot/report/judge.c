/* SPDX-License-Identifier: MIT */
/*
 * judge.c - a model and the names of its addresses become a report: verdicts, order, sums.
 *
 * Order of decisions for each site that holds blocks: memory the runtime libraries keep for
 * themselves is never a leak and needs no suppression; then the suppressions; what is left counts.
 * Names are asked for only here and by the outputs, and symbols.c remembers them, so a report of
 * thousands of sites asks for each address once.
 */
#include "snapshot/report/report.h"

#include <string.h>
#include <time.h>

#include "snapshot/alloc.h"
#include "snapshot/report/parts.h"
#include "snapshot/report/pairs.h"

uint64_t report_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t report_age_ms(const struct report *report, uint32_t at_ms)
{
	uint64_t ran_ms = report->model->hello.seconds_ns / 1000000;

	/* the target's clock is coarse: something may seem to have happened just after the end */
	return at_ms < ran_ms ? ran_ms - at_ms : 0;
}

static void add_frames(struct report *report, const struct model_site *site, uint16_t i,
	struct report_stack *stack)
{
	static const struct symbol_frame unknown = {0};
	const struct model_module *module = model_module(report->model, site->modules[i]);
	bool is_exact = i == 0 && (site->flags & LW_SITE_EXACT_PC);
	uint64_t offset = model_offset(report->model, site->pcs[i], site->modules[i]);
	const struct symbol_frame *symbols = &unknown;
	size_t nr_symbols = 1;

	if (module)
		symbols = symbols_resolve(
			report->symbols, module->same_as, offset, is_exact, &nr_symbols);
	for (size_t s = 0; s < nr_symbols; s++) {
		stack->frames = alloc_grow(stack->frames, stack->nr_frames, &stack->max_frames,
			sizeof(*stack->frames));
		stack->frames[stack->nr_frames++] = (struct report_frame){
			.pc = site->pcs[i] - !is_exact,
			.offset = offset - !is_exact,
			.module = module,
			.module_id = module ? module->same_as : LW_NO_MODULE,
			.symbol = &symbols[s],
		};
	}
}

static enum verdict_owner owner_of(const struct report *report, const struct report_frame *frame)
{
	return frame->module ? report->owners[frame->module_id] : VERDICT_USER;
}

/* Code that is in every stack of every program: libraries, and the program's own _start. */
static bool is_of_program(const struct report *report, const struct report_frame *frame)
{
	const char *function = frame->symbol->function;

	return owner_of(report, frame) == VERDICT_USER &&
	       !(function && !strcmp(function, "_start"));
}

void report_stack(struct report *report, const struct model_site *site, struct report_stack *stack)
{
	stack->nr_frames = 0;
	for (uint16_t i = 0; i < site->nr_frames; i++)
		add_frames(report, site, i, stack);
	stack->first_user = 0;
	stack->end_user = stack->nr_frames;
	while (stack->first_user < stack->nr_frames &&
		!is_of_program(report, &stack->frames[stack->first_user]))
		stack->first_user++;
	if (stack->first_user == stack->nr_frames) {
		stack->first_user = 0; /* a library's own: then all of it */
		return;
	}
	while (!is_of_program(report, &stack->frames[stack->end_user - 1]))
		stack->end_user--;
}

/* What the frame that called into libc called there, from its code. It is never an exact pc. */
static const char *callee_of(
	struct report *report, const struct report_stack *stack, const struct verdict_frame *frames)
{
	size_t end = verdict_libc_end(frames, stack->nr_frames);
	const struct report_frame *caller = &stack->frames[end];

	if (!end || !caller->module)
		return NULL;
	return symbols_callee(report->symbols, caller->module_id, caller->offset + 1);
}

static struct suppress_rule *rule_for(struct report *report, const struct report_stack *stack)
{
	struct suppress_rule *rule = NULL;

	for (size_t i = 0; i < stack->nr_frames && !rule && report->suppress->nr_rules; i++) {
		const struct report_frame *frame = &stack->frames[i];

		rule = suppress_find(report->suppress, frame->symbol->function, frame->symbol->file,
			frame->module ? frame->module->path : NULL);
	}
	return rule;
}

/* What was lost then is lost still; but what was reachable while it ran may not have been so at its end. */
bool report_is_scan_fresh(const struct report *report)
{
	return model_is_scanned(report->model) &&
	       (report->model->scan.flags & LW_SCAN_AT_EXIT || !strcmp(report->state, "live"));
}

void report_judge_site(
	struct report *report, const struct report_stack *stack, struct report_site *judged)
{
	struct verdict_frame *frames = alloc_array(stack->nr_frames, sizeof(*frames));
	struct verdict_stack names = {.frames = frames, .nr_frames = stack->nr_frames};

	for (size_t i = 0; i < stack->nr_frames; i++)
		frames[i] = (struct verdict_frame){.owner = owner_of(report, &stack->frames[i]),
			.function = stack->frames[i].symbol->function};
	if (stack->nr_frames)
		names.callee = callee_of(report, stack, frames);
	judged->reason = judged->site->flags & LW_SITE_IGNORED
				 ? "the program, which asked to ignore it"
				 : verdict_runtime(&names, &judged->through);
	judged->verdict = judged->reason	  ? VERDICT_RUNTIME
			  : report_is_scan_fresh(report) ? VERDICT_REACHABLE
							 : VERDICT_UNFREED;
	if (judged->trend)
		judged->verdict = verdict_with_growth(
			judged->verdict, judged->trend->growth.kind, judged->trend->is_held);
	if (judged->verdict != VERDICT_RUNTIME)
		judged->rule = rule_for(report, stack);
	free(frames);
}

static void add_sum(struct report_sum *sum, const struct report_site *judged)
{
	sum->bytes += judged->bytes;
	sum->blocks += judged->blocks;
	sum->nr_sites++;
}

static void add_to_rule(struct suppress_rule *rule, const struct report_site *judged)
{
	rule->nr_sites++;
	rule->nr_blocks += judged->blocks;
	rule->nr_bytes += judged->bytes;
}

/* Whatever its past says of it: a site that grows may be pointed to, and one that does not may be lost. */
static void count_pointed(struct report *report, const struct report_site *judged)
{
	struct report_site rest = *judged;

	rest.bytes -= judged->lost.bytes + judged->indirect.bytes;
	rest.blocks -= judged->lost.blocks + judged->indirect.blocks;
	if (judged->verdict != VERDICT_HELD && rest.blocks)
		add_sum(&report->pointed, &rest);
}

static void count_site(struct report *report, const struct report_site *judged)
{
	bool is_held = judged->verdict == VERDICT_HELD;

	if (!is_held)
		add_sum(&report->live, judged);
	if (judged->rule) {
		add_sum(&report->suppressed, judged);
		add_to_rule(judged->rule, judged);
	} else if (judged->verdict == VERDICT_RUNTIME) {
		add_sum(&report->runtime, judged);
	} else if (!report_is_leak(judged)) {
		add_sum(&report->reachable, judged);
		count_pointed(report, judged);
	} else {
		count_pointed(report, judged);
		add_sum(is_held ? &report->held : &report->leaked, judged);
		report->lost.bytes += judged->lost.bytes;
		report->lost.blocks += judged->lost.blocks;
		report->indirect.bytes += judged->indirect.bytes;
		report->indirect.blocks += judged->indirect.blocks;
		report->nr_leak_sites++;
	}
}

/* What the site's past says, if it says anything. */
static struct trend *trend_of(const struct report *report, const struct model_site *site)
{
	struct trend found;
	struct trend *kept;

	trend_judge(report->model, site, !strcmp(report->state, "killed"), &found);
	if (found.growth.kind == GROWTH_STEADY && !found.held_blocks)
		return NULL;
	kept = alloc_array(1, sizeof(*kept));
	*kept = found;
	return kept;
}

/* A site that holds blocks, or has held them until exit and grown; false: nobody wants to see it. */
static bool look_at(const struct report *report, size_t index, struct report_site *judged)
{
	const struct model_site *site = &report->model->sites[index];
	struct trend *trend;

	if (site->merged != index || (!site->live_blocks && !site->history))
		return false;
	trend = trend_of(report, site);
	if (!site->live_blocks && !(trend && trend->is_held)) {
		free(trend);
		return false;
	}
	*judged = (struct report_site){.site = site,
		.trend = trend,
		.bytes = site->live_blocks ? site->live_bytes : trend->held_bytes,
		.blocks = site->live_blocks ? site->live_blocks : trend->held_blocks};
	return true;
}

bool report_is_leak(const struct report_site *judged)
{
	return verdict_is_leak(judged->verdict) || judged->lost.blocks || judged->indirect.blocks;
}

/* Leaks before all others, what is suppressed behind them. */
static int rank_of(const struct report_site *judged)
{
	int rank = verdict_rank(judged->verdict);

	if (!report_is_leak(judged))
		rank += NR_VERDICTS;
	return rank + (judged->rule ? 2 * NR_VERDICTS : 0);
}

/* Worst verdict first, then by bytes, then by blocks; the id makes the order the same every time.
 */
static int compare_sites(const void *left, const void *right)
{
	const struct report_site *a = left, *b = right;
	int rank_a = rank_of(a), rank_b = rank_of(b);

	if (rank_a != rank_b)
		return rank_a - rank_b;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->blocks != b->blocks)
		return a->blocks < b->blocks ? 1 : -1;
	return a->site->id < b->site->id ? -1 : a->site->id > b->site->id;
}

void report_introduce_modules(struct report *report)
{
	for (unsigned i = 0; i < report->model->nr_modules; i++) {
		const struct model_module *module = &report->model->modules[i];

		if (!module->is_known)
			continue;
		report->owners[i] = verdict_owner(module->path);
		if (module->same_as == i)
			symbols_module(report->symbols, i, module->path, module->build_id,
				module->build_id_bytes);
	}
}

static void count_totals(struct report *report)
{
	const struct model *model = report->model;

	for (size_t i = 0; i < model->nr_sites; i++) {
		const struct model_site *site = &model->sites[i];

		if (site->merged != i)
			continue;
		report->nr_alloc_sites += site->count.alloc_blocks > 0;
		report->total_allocs += site->count.alloc_blocks;
		report->total_bytes += site->count.alloc_bytes;
		report->total_frees += site->count.freed_blocks;
	}
	for (size_t i = 0; i < sizeof(model->totals.dropped) / sizeof(model->totals.dropped[0]);
		i++)
		report->nr_dropped += model->totals.dropped[i];
	for (size_t i = 0; i < model->nr_events; i++) {
		bool is_mismatch = model->events[i].what == LW_EVENT_MISMATCH;

		if (model->events[i].is_rejected)
			continue;
		report->nr_mismatches += is_mismatch;
		report->nr_errors += !is_mismatch;
	}
	if (model->totals.peak_bytes > 0)
		report->peak_bytes = (uint64_t)model->totals.peak_bytes;
	if (report->peak_bytes < report->live.bytes)
		report->peak_bytes = report->live.bytes;
}

void report_judge(struct report *report)
{
	struct model *model = report->model;
	struct report_stack stack = {0};
	size_t first;

	report_introduce_modules(report);
	for (size_t i = 0; i < model->nr_events; i++)
		pairs_check(report, &model->events[i], &stack);
	for (size_t i = 0; i < model->nr_sites; i++) {
		struct report_site judged;

		if (!look_at(report, i, &judged))
			continue;
		report_stack(report, judged.site, &stack);
		report_judge_site(report, &stack, &judged);
		if (!judged.site->live_blocks && judged.verdict != VERDICT_HELD) {
			free(judged.trend); /* the C library's own, and gone */
			continue;
		}
		first = report->nr_sites;
		parts_add(report, &judged);
		for (size_t part = first; part < report->nr_sites; part++)
			count_site(report, &report->sites[part]);
	}
	free(stack.frames);
	if (report->nr_sites)
		qsort(report->sites, report->nr_sites, sizeof(*report->sites), compare_sites);
	count_totals(report);
}

size_t report_end_of_reachable(const struct report *report)
{
	size_t end = report->nr_leak_sites;

	while (end < report->nr_sites && !report->sites[end].rule &&
		report->sites[end].verdict != VERDICT_RUNTIME)
		end++;
	return end;
}

bool report_judge_event(struct report *report, size_t index)
{
	struct report_stack stack = {0};

	if (index >= report->model->nr_events)
		return false;
	report_introduce_modules(report);
	pairs_check(report, &report->model->events[index], &stack);
	free(stack.frames);
	return !report->model->events[index].is_rejected;
}

bool report_has_news(const struct report *report)
{
	const uint64_t *dropped = report->model->totals.dropped;

	/* what was not recorded may be a leak; the other losses cost names, not truth */
	return report->nr_leak_sites || report->nr_mismatches || report->nr_errors ||
	       report->missing ||
	       report->model->nr_bad || dropped[LW_DROP_BLOCKS] || dropped[LW_DROP_COUNTERS] ||
	       dropped[LW_DROP_EVENTS];
}

void report_fini(struct report *report)
{
	for (size_t i = 0; i < report->nr_sites; i++)
		free(report->sites[i].trend);
	free(report->sites);
	report->sites = NULL;
}
