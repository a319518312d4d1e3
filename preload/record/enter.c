/* SPDX-License-Identifier: MIT */
/*
 * enter.c - who may work in our tables: the slow ways through the gate (enter.h), and the process whose tables they are.
 *
 * The first event of a program brings everything up, the first of a forked child makes the tables its own, the first
 * of a thread gives it a room. A thread that has given its room back borrows one for each event. An event that was left by a
 * handler that jumped out of it is ended here when the next one comes.
 */
#include "preload/record/enter.h"

#include <errno.h>
#include <signal.h>

#include "preload/base/lock.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/record/history.h"
#include "preload/record/sample.h"
#include "preload/record/sites.h"
#include "preload/record/threads.h"
#include "preload/record/track.h"
#include "preload/share/box.h"
#include "preload/unwind/stack.h"

union lw_hot_page lw_hot_page LW_ROOM __attribute__((aligned(4096)));

enum {
	GENERATIONS_PER_FORK = 1 << 24,
	LEAST_SIGNAL_FRAME = 512, /* the kernel's is larger; our own calls between two looks are not */
	MOST_STACK = 64 << 20,
};

/* The hot page as it was when we started: what a forked child, whose page is wiped, begins with. */
static struct lw_hot_values hot_at_start;
static uint32_t nr_forks;

enum mode { MODE_BEFORE, MODE_ON, MODE_OFF };
static uint32_t mode = MODE_BEFORE;

/* A forked child at its first event: one thread, a wiped hot page, the parent's region mapped. */
static LW_COLD bool start_child(struct lw_thread *thread)
{
	uint32_t gate = thread->gate;

	thread->gate = LW_GATE_BUSY;
	lw_lock_reset(&lw_sites_lock);
	lw_hot = hot_at_start;
	lw_hot.active = 0;
	lw_hot.unloading = 0;
	lw_hot.generation = ++nr_forks * GENERATIONS_PER_FORK;
	if (!lw_box || !lw_box_renew()) {
		lw_box = NULL;
		mode = MODE_OFF;
		thread->gate = LW_GATE_OFF;
		return false;
	}
	lw_hot.start_ns = lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE);
	lw_blocks_fork_child();
	lw_threads_fork_child(thread);
	thread->tick_s = -1; /* what it knows of the time is counted from the parent's start */
	lw_sample_forget(thread);
	lw_history_start();
	lw_store(&lw_box->state, LW_STATE_RUNNING);
	lw_store_release(&lw_hot.active, 1);
	lw_child_started();
	thread->gate = gate;
	return true;
}

/* The first event of a process, program or forked child. */
static bool start_process(struct lw_thread *thread)
{
	bool is_up;

	if (lw_load(&mode) == MODE_BEFORE) {
		thread->gate = LW_GATE_BUSY;
		is_up = lw_bring_up();
		thread->gate = LW_GATE_NEW;
		return is_up;
	}
	return lw_load(&lw_hot.active) || start_child(thread);
}

void lw_leave(struct lw_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (LW_UNLIKELY(thread->is_late)) {
		lw_threads_give_back(thread);
		thread->is_late = 0;
		thread->gate = LW_GATE_LATE;
		return;
	}
	thread->gate = thread->nr_paused ? LW_GATE_PAUSED : lw_open_or_look(thread);
}

/*
 * Was the event under way left by a handler that jumped out of it? An event inside it stands deeper on the
 * stack, by a signal frame at least. On another stack nothing is known.
 */
static LW_COLD bool is_left(const struct lw_thread *thread)
{
	uintptr_t sp = lw_stack_pointer();
	stack_t alternate;

	return thread->own_hi && sp < thread->own_hi && thread->entered_sp < thread->own_hi &&
	       sp + LEAST_SIGNAL_FRAME >= thread->entered_sp && thread->entered_sp + MOST_STACK >= thread->own_hi &&
	       !lw_sandboxed() && !lw_syscall(SYS_sigaltstack, NULL, &alternate) &&
	       !(alternate.ss_flags & SS_ONSTACK);
}

/* What it held is given back as it stands: what the tables get is published last, so nothing half done is seen. */
static LW_COLD void leave_for_it(struct lw_thread *thread) LW_NO_LOCK_CHECK
{
	lw_box_drop(LW_DROP_REENTRANT);
	while (lw_lock_is_mine(&lw_sites_lock))
		lw_lock_release(&lw_sites_lock);
	lw_leave(thread);
}

LW_COLD bool lw_enter_slowly(struct lw_thread *thread)
{
	int saved_errno = errno;
	bool is_in = false;
	uint64_t mask;

	if (thread->gate == LW_GATE_BUSY && lw_load(&mode) == MODE_ON && lw_load(&lw_hot.active) && is_left(thread))
		leave_for_it(thread);
	if (thread->gate != LW_GATE_BUSY)
		thread->entered_sp = lw_stack_pointer();
	if (thread->gate == LW_GATE_BUSY || thread->gate == LW_GATE_OFF || lw_load(&mode) == MODE_OFF)
		return false;
	if (lw_load(&mode) == MODE_BEFORE || !lw_load(&lw_hot.active)) {
		/* a handler that ended the process half way would leave a region nobody knows of */
		lw_sys_block_signals(&mask);
		is_in = start_process(thread);
		lw_sys_restore_signals(&mask);
		errno = saved_errno;
		if (!is_in)
			return false;
	}
	if (lw_sandboxed() && !lw_gate_is_open(thread->gate)) {
		thread->gate = LW_GATE_OFF; /* setting it up would take system calls */
		return false;
	}
	if (thread->gate == LW_GATE_LATE) {
		thread->gate = LW_GATE_BUSY;
		is_in = lw_threads_borrow(thread);
		thread->is_late = is_in;
		if (!is_in)
			thread->gate = LW_GATE_LATE;
	} else {
		bool is_known = lw_gate_is_open(thread->gate);

		thread->gate = LW_GATE_BUSY;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		is_in = (lw_load(&lw_hot.active) || start_child(thread)) && (is_known || lw_threads_attach(thread));
	}
	errno = saved_errno;
	return is_in;
}

bool lw_track_enter(void)
{
	return lw_enter(&lw_self);
}

void lw_track_leave(void)
{
	lw_leave(&lw_self);
}

/* ---- on and off ---- */

void lw_track_start(void)
{
	lw_history_start();
	hot_at_start = lw_hot;
	lw_store(&lw_box->state, LW_STATE_RUNNING);
	lw_store_release(&lw_hot.active, 1);
	lw_store_release(&mode, MODE_ON);
}

void lw_track_stop(void)
{
	lw_store_release(&mode, MODE_OFF);
	lw_store_release(&lw_hot.active, 0);
}

void lw_track_forked_inside(void)
{
	if (lw_load(&mode) == MODE_ON && lw_self.gate == LW_GATE_BUSY && !lw_load(&lw_hot.active))
		(void)start_child(&lw_self);
}

bool lw_track_is_on(void)
{
	return lw_load(&mode) == MODE_ON;
}

bool lw_track_is_over(void)
{
	return lw_load(&mode) == MODE_OFF;
}
