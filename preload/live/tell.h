/* SPDX-License-Identifier: MIT */
/*
 * tell.h - what is said while the program runs: a wrong release at once, and a report on request.
 *
 * A wrong release may end the process in the next instruction, so its event is told before the real
 * release runs, by leakwatch-snapshot, which knows names; this thread waits for that, a bounded time
 * for each and for all together. lw_tell_event() is declared in record/wrong.h, which calls it.
 */
#ifndef LW_LIVE_TELL_H
#define LW_LIVE_TELL_H

#include "preload/base/sys_x86_64.h"
#include "preload/share/options.h"

/* Settings it needs; kept by reference. */
void lw_tell_init(const struct lw_options *options);

/* The whole report, now, where the report of the end would go. */
void lw_tell_all(void);

/* lw_scan_now(), from outside of a hook. */
bool lw_tell_lost(const uint64_t regs[LW_NR_REGS], uint64_t *bytes, uint64_t *blocks);

#endif
