/* SPDX-License-Identifier: MIT */
/*
 * parts.c - what a scan found, laid over what was judged of a site; see parts.h.
 *
 * A site that grows stays one entry and is `growing`, whether its blocks are still pointed to or not: that
 * it goes on matters more. How much of it is lost stands beside the verdict. Everything else is split.
 */
#include "snapshot/report/parts.h"

#include "snapshot/alloc.h"

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

void parts_add(struct report *report, struct report_site *whole)
{
	const struct lw_scan_site *scan = &whole->site->scan;
	bool is_scanned = model_is_scanned(report->model) && whole->verdict != VERDICT_RUNTIME &&
			  whole->verdict != VERDICT_HELD;
	struct report_sum sum;

	if (is_scanned && whole->verdict == VERDICT_GROWING) {
		whole->lost = least(scan->lost_bytes, scan->lost_blocks, whole);
		whole->indirect = least(scan->indirect_bytes, scan->indirect_blocks, whole);
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
