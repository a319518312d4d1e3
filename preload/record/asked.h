/* SPDX-License-Identifier: MIT */
/*
 * asked.h - what the program itself says and asks, through leakwatch.h.
 *
 * All may be called at any time in any thread, and do nothing where the process or the thread is not
 * tracked. Only lw_asked_announce() is meant to be fast: it stands before every call that a macro maps.
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
 * A macro's site, for the call that comes next (hint.h). The number is for taking it back when that
 * call is over; 0: not kept.
 */
uint32_t lw_asked_announce_slowly(uintptr_t pc, uintptr_t sp, const char *file, uint32_t line, uint32_t what);

LW_INLINE uint32_t lw_asked_announce(uintptr_t pc, uintptr_t sp, const char *file, uint32_t line, uint32_t what)
{
	struct lw_thread *thread = &lw_self;
	struct lw_hints *hints = thread->hints;

	if (LW_UNLIKELY(!hints || !lw_hint_has_room(hints, sp)))
		return lw_asked_announce_slowly(pc, sp, file, line, what);
	if (LW_LIKELY(thread->gate == LW_GATE_OPEN))
		thread->gate = LW_GATE_LOOK;
	return lw_hint_push(hints, pc, sp, file, line, what);
}

void lw_asked_take_back(uint32_t number);

#endif
