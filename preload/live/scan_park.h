/* SPDX-License-Identifier: MIT */
/*
 * scan_park.h - stopping threads without ptrace: a signal whose handler says where it came in, and waits.
 *
 * Second choice: some system calls come back with EINTR, which a stop by ptrace can mend and this cannot.
 * The signal is the highest real-time one that has no handler and is not ignored; its handler stays once it is there,
 * because a late signal to a program without it would end the program.
 */
#ifndef LW_LIVE_SCAN_PARK_H
#define LW_LIVE_SCAN_PARK_H

#include "preload/live/scan_child.h"

/*
 * As lw_scan_freeze(). To be called by a process that shares the program's memory and its table of handlers.
 * False: not all threads came; one that blocks the signal is not sent it.
 */
bool lw_scan_park(struct lw_scan_plan *plan, int32_t spare);
void lw_scan_unpark(void);

#endif
