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

#include "preload/share/options.h"

/* Settings it needs; kept by reference. */
void lw_tell_init(const struct lw_options *options);

/* The whole report, now, where the report of the end would go. */
void lw_tell_all(void);

#endif
