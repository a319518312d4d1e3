/* SPDX-License-Identifier: MIT */
/*
 * scan_place.h - what an address of the snapshot is: a variable of a loaded object, a frame of a stopped thread.
 * For the scanner, in its own copy of the memory.
 */
#ifndef LW_LIVE_SCAN_PLACE_H
#define LW_LIVE_SCAN_PLACE_H

#include "preload/live/scan_maps.h"
#include "preload/live/scan_stacks.h"
#include "preload/share/chain.h"

/* False: it lies in no loaded object; *place says so too. */
bool lw_scan_place_find(uintptr_t address, struct lw_place *place);

/* Fills in what a root at this address is: kind, thread, place. */
void lw_scan_place_root(const struct lw_maps *maps, const struct lw_scan_threads *threads, uintptr_t address,
		struct lw_chain *chain);

#endif
