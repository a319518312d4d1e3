/* SPDX-License-Identifier: MIT */
/*
 * scan_freeze.h - the other threads stand still for the moment of a snapshot, and say where they stand.
 *
 * By ptrace, from a process of ours that is not the program's: no signal is sent, no handler runs. A
 * system call that a stop would let fail with EINTR is done again, so that the program does not see it.
 */
#ifndef LW_LIVE_SCAN_FREEZE_H
#define LW_LIVE_SCAN_FREEZE_H

#include "preload/live/scan_child.h"

/*
 * Stops all threads of plan->pid but `spare` (0 none), adds them to plan->threads. False: it is not
 * allowed, or not all stopped in time.
 */
bool lw_scan_freeze(struct lw_scan_plan *plan, int32_t spare);

/* Lets go of all that were stopped. */
void lw_scan_thaw(void);

#endif
