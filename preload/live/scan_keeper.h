/* SPDX-License-Identifier: MIT */
/*
 * scan_keeper.h - the process that makes snapshots of a program with more than one thread, or that runs on.
 *
 * It shares the program's memory (raw clone, no exit signal), stops the threads from outside, makes
 * the snapshot, lets them go, and waits for the scanner. Twice, some time apart: only what was lost in
 * both is lost, because a single snapshot may fall between two steps of a thread that could not be stopped.
 */
#ifndef LW_LIVE_SCAN_KEEPER_H
#define LW_LIVE_SCAN_KEEPER_H

#include "preload/live/scan_child.h"

/*
 * Starts it. The plan says what is known of the calling thread; with is_waiting that thread stands still until the
 * keeper has ended, and is not stopped. Returns its pid, to be reaped with __WALL, or -errno.
 */
int lw_scan_keeper_start(struct lw_scan_plan *plan, bool is_waiting);

/*
 * May a scanner that takes about so many bytes run in the memory of the process itself, whose only thread waits? That
 * spares the copy, which for a heap of 100 MB costs as much as the search.
 */
bool lw_scan_may_share(uint64_t needed_bytes);

/* Starts a scanner in the calling process and waits for it, a bounded time; lw_box->scan says what came of it. */
void lw_scan_once(const struct lw_scan_plan *plan, void (*thaw)(void));

/* Notes why no scan is made. */
void lw_scan_refuse(uint32_t why);

#endif
