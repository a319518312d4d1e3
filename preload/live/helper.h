/* SPDX-License-Identifier: MIT */
/*
 * helper.h - the process that answers viewers; it shares the target's memory and nothing else.
 *
 * It makes raw system calls only, with all signals blocked, takes no lock, allocates nothing from
 * the heap, and has a thread pointer of its own, so that not even a stray write to errno reaches the
 * target. It ends when the last viewer has left or died, when the target has ended or called exec, or
 * when the queue is gone. After a kill it first writes into the region what only the block table
 * knows: how old the oldest block of each site is.
 */
#ifndef LW_LIVE_HELPER_H
#define LW_LIVE_HELPER_H

#include "preload/base/base.h"

/* In the target, before each start: memory. False: none to be had. */
bool lw_helper_prepare(void);

/* The helper itself, on its own stack; does not return. */
void lw_helper_run(void *unused) __attribute__((noreturn));

/* In a forked child: what is remembered belongs to the parent's helper. */
void lw_helper_forked(void);

#endif
