/* SPDX-License-Identifier: MIT */
/*
 * parts.c - what a scan found, laid over what was judged of a site; see parts.h.
 *
 * A site that grows stays one entry and is `growing`, whether its blocks are still pointed to or not: that
 * it goes on matters more. How much of it is lost stands beside the verdict. Everything else is split. Of a site that
 * made its blocks while the program started and none in a long run since, what is lost is at the end one entry,
 * `unfreed`: a leak still, but behind those that may cost more tomorrow.
 */
#include "snapshot/report/parts.h"

#include "snapshot/alloc.h"

enum {
	LEAST_RUN_MS = 4000, /* in a shorter run nothing can be said to have stopped */
	START_SHARE = 10,    /* the start is so small a part of the run */
};

static void add(struct report *report, const struct report_site *judged)
{
	report->sites = alloc_grow(
		report->sites, report->nr_sites, &report->max_sites, sizeof(*report->sites));
	report->sites[report->nr_sites++] = *judged;
}

static struct report_sum least(uint64_t bytes, uint64_t blocks, const struct report_site *whole)
{
	/* the counters of a live process went on while it was scanned */
	struct report_sum sum = {bytes < whole->bytes ? bytes : whole->bytes,
		blocks < whole->blocks ? blocks : whole->blocks, blocks ? 1 : 0};

	if (sum.blocks == whole->blocks)
		sum.bytes = whole->bytes;
	return sum;
}

/* All of it was there after a tenth of a run that was long enough, none went, and nothing came since. */
static bool is_of_start(const struct report *report, const struct model_site *site)
{
	uint64_t ran_ms = report->model->hello.seconds_ns / 1000000, start_ms = ran_ms / START_SHARE;
	const struct model_history *past = site->history;

	if (ran_ms < LEAST_RUN_MS || site->first_ms > start_ms ||
		site->count.alloc_blocks != site->live_blocks || (past && !past->nr_samples))
		return false;
	for (uint32_t i = 0; past && i < past->nr_samples; i++) /* without a past it always held the same */
		if (past->samples[i].ms > start_ms && past->samples[i].bytes != site->live_bytes)
			return false;
	return true;
}

static void split_off(struct report *report, struct report_site *whole, enum verdict verdict,
	const struct report_sum *sum, bool is_lost)
{
	struct report_site part = *whole;

	if (!sum->blocks)
		return;
	part.verdict = verdict;
	part.bytes = sum->bytes;
	part.blocks = sum->blocks;
	part.lost = is_lost ? *sum : (struct report_sum){0};
	part.indirect = is_lost ? (struct report_sum){0} : *sum;
	part.trend = NULL;
	add(report, &part);
	whole->bytes -= sum->bytes;
	whole->blocks -= sum->blocks;
}

/* What of the site nothing points to, and what only that points to. */
static void note_pointless(const struct lw_scan_site *scan, struct report_site *whole)
{
	struct report_site rest;

	whole->lost = least(scan->lost_bytes, scan->lost_blocks, whole);
	rest = *whole;
	rest.bytes -= whole->lost.bytes;
	rest.blocks -= whole->lost.blocks;
	whole->indirect = least(scan->indirect_bytes, scan->indirect_blocks, &rest);
}

/* Lost and indirect together; what is still pointed to is none of it. */
static void split_off_start(struct report *report, struct report_site *whole)
{
	struct report_site part = *whole;

	note_pointless(&whole->site->scan, &part);
	part.verdict = VERDICT_UNFREED;
	part.bytes = part.lost.bytes + part.indirect.bytes;
	part.blocks = part.lost.blocks + part.indirect.blocks;
	part.trend = NULL;
	if (!part.blocks)
		return;
	add(report, &part);
	whole->bytes -= part.bytes;
	whole->blocks -= part.blocks;
}

void parts_add(struct report *report, struct report_site *whole)
{
	const struct lw_scan_site *scan = &whole->site->scan;
	bool is_scanned = model_is_scanned(report->model) && whole->verdict != VERDICT_RUNTIME &&
			  whole->verdict != VERDICT_HELD;
	struct report_sum sum;

	if (is_scanned && whole->verdict == VERDICT_GROWING) {
		note_pointless(scan, whole);
	} else if (is_scanned && report->model->scan.flags & LW_SCAN_AT_EXIT && is_of_start(report, whole->site)) {
		/* who asks a running process for what is lost wants to see it called so */
		split_off_start(report, whole);
	} else if (is_scanned) {
		sum = least(scan->lost_bytes, scan->lost_blocks, whole);
		split_off(report, whole, VERDICT_LOST, &sum, true);
		sum = least(scan->indirect_bytes, scan->indirect_blocks, whole);
		split_off(report, whole, VERDICT_INDIRECT, &sum, false);
	}
	if (whole->blocks)
		add(report, whole);
	else
		free(whole->trend);
}
