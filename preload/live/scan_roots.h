/* SPDX-License-Identifier: MIT */
/*
 * scan_roots.h - what of the address space is a root, and what is an allocator's or ours.
 *
 * A root is all memory a program can keep pointers in without having allocated it: data of modules,
 * stacks, thread-local storage, mappings of its own. The kernel merges neighbouring mappings, so one
 * line of the maps may be half the allocator's and half the program's; whose a page is, is told by the blocks in it.
 */
#ifndef LW_LIVE_SCAN_ROOTS_H
#define LW_LIVE_SCAN_ROOTS_H

#include "preload/live/scan_cut.h"
#include "preload/live/scan_mark.h"
#include "preload/live/scan_stacks.h"

struct lw_scan_roots {
	struct lw_scan_cuts cuts;
	struct lw_scan_threads threads;
	struct lw_scan_cut list; /* memory of the scan itself that is not in lw_mem's book */
	struct lw_scan_cut vectors; /* registers: a root wherever it lies */
	unsigned nr_unknown_stacks;
	bool is_glibc;	/* so is the allocator, and no other stands before it */
	bool has_unseen; /* some blocks may be missing in the table */
	uintptr_t allocator_start, allocator_end; /* the allocator's module, 0 none of its own */
};

/*
 * After the maps were read and the blocks added and sorted, before the index is finished: finds what is no
 * root, and where there may be blocks we do not know of adds the memory between blocks as blocks
 * without a verdict. False: no memory.
 */
bool lw_scan_roots_find(struct lw_scan_roots *roots, struct lw_scan_marks *marks);

/* Marks all that the roots reach. */
void lw_scan_roots_mark(struct lw_scan_roots *roots, struct lw_scan_marks *marks);

/* The memory that are roots, stretch by stretch, without the registers. */
void lw_scan_roots_visit(const struct lw_scan_roots *roots, const struct lw_maps *maps, lw_maps_visit_fn *visit,
		void *context);

#endif
