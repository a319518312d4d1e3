/* SPDX-License-Identifier: MIT */
/*
 * scan_freeze.c - stopping threads by ptrace; see scan_freeze.h.
 *
 * Threads are seized, which they do not notice; then told to stop, and waited for, all at once, so that the time is that
 * of the slowest. New ones may appear meanwhile: the list is read until nothing is new. Whoever dies is left out. If
 * this process dies the kernel lets all go. One is used at a time.
 */
#include "preload/live/scan_freeze.h"

#include <errno.h>

#include "preload/base/sys.h"
#include "preload/live/scan_tasks.h"

enum {
	GETREGS = 12, /* PTRACE_* */
	SETREGS = 13,
	GETFPREGS = 14,
	DETACH = 17,
	GETREGSET = 0x4204,
	SEIZE = 0x4206,
	INTERRUPT = 0x4207,
	EVENT_STOP = 128,
	WALL = 0x40000000,
	NO_HANG = 1,
	MAX_ROUNDS = 16,
	POLL_US = 20,
	LEAST_PATIENCE_US = 100000, /* they stop when they next run: on a busy machine that takes a while */
	PATIENCE_US_A_THREAD = 200,
};

enum held_state { HELD_SEIZED, HELD_TOLD, HELD_STOPPED, HELD_GONE };

static struct held {
	int32_t tid;
	uint16_t state;
	uint16_t signal; /* that it was about to take */
} held[LW_SCAN_MAX_THREADS] LW_ROOM;
static uint32_t nr_held;

struct whom {
	int32_t pid, spare;
};

static bool is_held(int32_t tid)
{
	for (uint32_t i = 0; i < nr_held; i++) {
		if (held[i].tid == tid)
			return true;
	}
	return false;
}

/* -errno of what went wrong, 1: it is seized, 0: it had gone. */
static int seize(int32_t pid, int32_t tid)
{
	long ret;

	if (nr_held == LW_SCAN_MAX_THREADS)
		return -ENOSPC;
	ret = lw_syscall(SYS_ptrace, SEIZE, tid, 0, 0);
	if (ret < 0)
		return ret == -ESRCH || lw_scan_task_is_gone(pid, tid) ? 0 : (int)ret;
	held[nr_held++] = (struct held){ tid, HELD_SEIZED, 0 };
	return 1;
}

static int seize_new(void *context, int32_t tid)
{
	const struct whom *whom = context;

	return tid == whom->spare || is_held(tid) ? 0 : seize(whom->pid, tid);
}

static void tell_all(void)
{
	for (uint32_t i = 0; i < nr_held; i++) {
		if (held[i].state != HELD_SEIZED)
			continue;
		(void)lw_syscall(SYS_ptrace, INTERRUPT, held[i].tid, 0, 0);
		held[i].state = HELD_TOLD;
	}
}

static void look_at(struct held *thread)
{
	int status = 0;
	long ret = lw_syscall(SYS_wait4, thread->tid, &status, NO_HANG | WALL, 0);

	if (ret == 0)
		return;
	if (ret < 0 || (status & 0xff) != 0x7f) { /* it ended */
		thread->state = HELD_GONE;
		return;
	}
	thread->state = HELD_STOPPED;
	if (status >> 16 != EVENT_STOP)
		thread->signal = (uint16_t)(status >> 8 & 0xff);
}

static bool wait_for_all(void)
{
	uint32_t patience_us = LEAST_PATIENCE_US + nr_held * PATIENCE_US_A_THREAD, nr_left = 1;
	struct timespec pause = { .tv_nsec = POLL_US * 1000 };
	uint64_t end_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) + (uint64_t)patience_us * 1000;

	while (nr_left) {
		nr_left = 0;
		for (uint32_t i = 0; i < nr_held; i++) {
			if (held[i].state == HELD_TOLD)
				look_at(&held[i]);
			nr_left += held[i].state == HELD_TOLD;
		}
		if (nr_left && lw_sys_clock_ns(CLOCK_MONOTONIC) > end_ns)
			return false;
		if (nr_left)
			(void)lw_syscall(SYS_nanosleep, &pause, 0);
	}
	return true;
}

/* The program is not to see that its call was interrupted, but by a signal of its own. */
static void mend(const struct held *thread, uint64_t regs[LW_PTRACE_REGS])
{
	if (thread->signal || (int64_t)regs[LW_PTRACE_RESULT] != -EINTR ||
			!lw_scan_may_repeat((int64_t)regs[LW_PTRACE_NUMBER]))
		return;
	lw_ptrace_regs_repeat(regs);
	(void)lw_syscall(SYS_ptrace, SETREGS, thread->tid, 0, regs);
}

/*
 * What a thread moves by vector instructions may for a moment be nowhere else: when it swaps or shifts
 * pointers. Pages of what is not written stay untouched.
 */
static void take_vectors(const struct lw_scan_plan *plan, int32_t tid, size_t slot)
{
	struct {
		void *at;
		size_t bytes;
	} room = { plan->vectors + slot * LW_SCAN_VECTOR_BYTES, LW_SCAN_VECTOR_BYTES };

	if (!plan->vectors)
		return;
	if (lw_syscall(SYS_ptrace, GETREGSET, tid, LW_PTRACE_ALL_REGS, &room) < 0)
		(void)lw_syscall(SYS_ptrace, GETFPREGS, tid, 0, room.at);
}

/* The pages that will be written while all stand still. */
static void touch_vectors(const struct lw_scan_plan *plan)
{
	for (size_t i = 0; plan->vectors && i < nr_held && plan->nr_threads + i < LW_SCAN_MAX_THREADS; i++)
		*(volatile unsigned char *)(plan->vectors + (plan->nr_threads + i) * LW_SCAN_VECTOR_BYTES) = 0;
}

static bool take_registers(struct lw_scan_plan *plan)
{
	bool is_all = true;

	for (uint32_t i = 0; i < nr_held; i++) {
		struct lw_scan_thread *to = &plan->threads[plan->nr_threads];

		if (held[i].state == HELD_GONE)
			continue;
		if (held[i].state != HELD_STOPPED || plan->nr_threads == LW_SCAN_MAX_THREADS ||
				lw_syscall(SYS_ptrace, GETREGS, held[i].tid, 0, to->regs) < 0) {
			is_all = false;
			continue;
		}
		to->tid = held[i].tid;
		to->nr_regs = LW_PTRACE_REGS;
		lw_ptrace_regs_unwind(to->regs, to->frame);
		take_vectors(plan, held[i].tid, plan->nr_threads);
		to->sp = to->regs[LW_PTRACE_SP] - LW_RED_ZONE_BYTES;
		plan->nr_threads++;
		mend(&held[i], to->regs);
	}
	return is_all;
}

bool lw_scan_freeze(struct lw_scan_plan *plan, int32_t spare)
{
	struct whom whom = { plan->pid, spare };
	bool is_all = false;
	int nr_new = 1;

	nr_held = 0;
	for (int round = 0; round < MAX_ROUNDS && nr_new > 0; round++) {
		nr_new = lw_scan_tasks_visit(plan->pid, seize_new, &whom);
		if (round == 0) {
			touch_vectors(plan);
			plan->stopped_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
		}
		tell_all();
		is_all = wait_for_all() && nr_new == 0;
	}
	is_all = take_registers(plan) && is_all;
	return is_all;
}

void lw_scan_thaw(void)
{
	for (uint32_t i = 0; i < nr_held; i++) {
		if (held[i].state != HELD_GONE)
			(void)lw_syscall(SYS_ptrace, DETACH, held[i].tid, 0, held[i].signal);
	}
	nr_held = 0;
}
