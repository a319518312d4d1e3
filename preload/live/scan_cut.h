/* SPDX-License-Identifier: MIT */
/*
 * scan_cut.h - a list of address intervals that are no roots: allocators' own memory, ours, the dead
 * part of stacks. Gathered in any order, sorted once, then walked along with the maps.
 */
#ifndef LW_LIVE_SCAN_CUT_H
#define LW_LIVE_SCAN_CUT_H

#include "preload/base/base.h"

struct lw_scan_cut {
	uintptr_t start, end;
};

struct lw_scan_cuts {
	struct lw_scan_cut *cuts;
	size_t nr, max;
	bool is_full; /* some were left out: their memory counts as root, which hides and never accuses */
};

bool lw_scan_cuts_init(struct lw_scan_cuts *cuts);

/* An interval that touches the one added before is put together with it. */
void lw_scan_cut(struct lw_scan_cuts *cuts, uintptr_t start, uintptr_t end);

/* By start; overlapping ones stay. */
void lw_scan_cuts_sort(struct lw_scan_cuts *cuts);

/* What is left of [start, end), piece by piece; `next` is the walk's memory, 0 at first, and starts must rise. */
typedef void lw_scan_piece_fn(void *context, uintptr_t start, uintptr_t end);
void lw_scan_cuts_rest(const struct lw_scan_cuts *cuts, size_t *next, uintptr_t start, uintptr_t end,
		lw_scan_piece_fn *piece, void *context);

#endif
