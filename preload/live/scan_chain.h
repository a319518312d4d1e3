/* SPDX-License-Identifier: MIT */
/*
 * scan_chain.h - examples: some blocks of the sites that matter, how they begin, and who holds them.
 *
 * Those are the sites with the most lost bytes, the most bytes allocated in the younger half of the run, and
 * the most bytes at all. Of a lost site no chain can be given.
 */
#ifndef LW_LIVE_SCAN_CHAIN_H
#define LW_LIVE_SCAN_CHAIN_H

#include "preload/live/scan_roots.h"
#include "preload/share/chain.h"

/* What the live blocks of a site add up to; counted while they are added to the index. */
struct lw_scan_tally {
	uint64_t bytes, young_bytes;
};

struct lw_scan_examples {
	const struct lw_scan_roots *roots;
	struct lw_scan_marks *marks;
	const struct lw_scan_tally *tallies; /* by site, as sites */
	const struct lw_scan_site *sites;
	uint32_t nr_sites;
	uint32_t now_ms; /* after the start */
	bool has_holders; /* else only of what is lost */
};

/* After all is judged. Fills chains[LW_MAX_CHAINS]; returns how many. */
uint32_t lw_scan_chains_find(const struct lw_scan_examples *examples, struct lw_chain *chains);

#endif
