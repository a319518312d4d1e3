/* SPDX-License-Identifier: MIT */
/*
 * asked.h - what the program itself says and asks, through leakwatch.h.
 *
 * All may be called at any time in any thread, and do nothing where the process or the thread is not
 * tracked.
 */
#ifndef LW_RECORD_ASKED_H
#define LW_RECORD_ASKED_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/record/hint.h"

/* This block, if it is one, is no leak, whatever becomes of it. */
void lw_asked_ignore(const void *ptr);

/* A moment, and what was allocated after it and is still there: bytes, and *blocks. Looks at every block. */
uint32_t lw_asked_checkpoint(void);
uint64_t lw_asked_unfreed_since(uint32_t checkpoint, uint64_t *blocks);

/* From now on this thread's allocations are (not) recorded; its releases always are. Calls nest. */
void lw_asked_pause(bool is_paused);

/*
 * A macro's site, for the call that comes next (hint.h), where the macro cannot write it itself: the
 * thread was never here, or has no room. The place is for taking it back when that call is over; NULL: not kept.
 */
struct lw_pending *lw_asked_announce(const struct lw_pending *site);
void lw_asked_take_back(struct lw_pending *place);

#endif
