/* SPDX-License-Identifier: MIT */
/*
 * enter.h - the gate (guard.h) on the way of nearly every event: one word read, written, and written back.
 */
#ifndef LW_RECORD_ENTER_H
#define LW_RECORD_ENTER_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/base/sys_x86_64.h"
#include "preload/record/hint.h"

/*
 * First the gate, then the look whether this process is set up: a handler that interrupts us between the two and
 * forks leaves a child that knows from the gate that it has to go on here (lw_track_forked_inside()).
 */
LW_INLINE bool lw_close_gate(struct lw_thread *thread, uint32_t gate)
{
	thread->gate = LW_GATE_BUSY;
	thread->entered_sp = lw_stack_pointer();
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (LW_LIKELY(lw_load(&lw_hot.active)))
		return true;
	thread->gate = gate;
	return false;
}

/*
 * The way in that nearly all events take: nothing to set up. The gate that was; LW_GATE_BUSY: the slow way.
 * A macro's site may be pending (LW_GATE_LOOK).
 */
LW_INLINE uint32_t lw_enter_quickly(struct lw_thread *thread)
{
	uint32_t gate = thread->gate;

	if (LW_UNLIKELY(gate != LW_GATE_OPEN) && gate != LW_GATE_LOOK)
		return LW_GATE_BUSY;
	return LW_LIKELY(lw_close_gate(thread, gate)) ? gate : LW_GATE_BUSY;
}

LW_INLINE void lw_leave_quickly(struct lw_thread *thread, enum lw_gate gate)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->gate = gate;
}

LW_INLINE enum lw_gate lw_open_or_look(const struct lw_thread *thread)
{
	if (LW_UNLIKELY(lw_hot.sample_bytes))
		return LW_GATE_SAMPLED;
	return LW_UNLIKELY(lw_hint_is_pending(thread)) ? LW_GATE_LOOK : LW_GATE_OPEN;
}

/* Where the gate is not open: sets up what has to be. False: not now, or not here. */
bool lw_enter_slowly(struct lw_thread *thread);

/* Any way in; true: the event is recorded, and lw_leave() ends it. */
LW_INLINE bool lw_enter(struct lw_thread *thread)
{
	if (LW_UNLIKELY(thread->gate != LW_GATE_OPEN || !lw_close_gate(thread, LW_GATE_OPEN)))
		return lw_enter_slowly(thread);
	return true;
}

void lw_leave(struct lw_thread *thread);

#endif
