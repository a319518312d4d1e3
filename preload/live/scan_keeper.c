/* SPDX-License-Identifier: MIT */
/* scan_keeper.c - snapshots of a running program; see scan_keeper.h. Raw system calls only, no thread of the program. */
#include "preload/live/scan_keeper.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/live/scan_freeze.h"
#include "preload/live/scan_memory.h"
#include "preload/live/scan_park.h"
#include "preload/share/options.h"
#include "preload/share/box.h"

enum {
	STACK_BYTES = 64 << 10,
	MOST_SHARED = 32 << 20, /* memory for a scanner in the program's own: more would raise its peak */
	/*
	 * Between two snapshots, and so the least age of what is accused. Where registers are not known: longer than any
	 * few instructions, even of a thread that waits for a core.
	 */
	BETWEEN_MS = 30,
	BETWEEN_STOPPED_MS = 10, /* where all registers were known, there was no such moment */
	LEAST_LIMIT_MS = 30000, /* a core may be busy with others: half a second a GB if it is not */
	LIMIT_MS_PER_GB = 20000,
	FIRST_POLL_US = 50,
	MAX_POLL_US = 5000,
	KNOCK_POLL_US = 200,
	MOST_KNOCK_US = 300000,
	VECTORS_BYTES = LW_SCAN_MAX_THREADS * LW_SCAN_VECTOR_BYTES,
	WALL = 0x40000000, /* __WALL */
	NO_HANG = 1,
	SIGNAL_KILL = 9,
};

static struct keeper {
	struct lw_scan_plan *plan;
	size_t nr_known; /* threads the plan knew at the start */
	uint32_t flags;
	int32_t spare;
	unsigned char *stack;
} keeper;

void lw_scan_refuse(uint32_t why)
{
	lw_store(&lw_box->scan.why, why);
	lw_store_release(&lw_box->scan.state, LW_SCAN_REFUSED);
}

static void sleep_us(uint32_t us)
{
	struct timespec pause = { .tv_nsec = (long)us * 1000 };

	(void)lw_syscall(SYS_nanosleep, &pause, 0);
}

static uint64_t limit_ns(void)
{
	int64_t live = lw_load(&lw_box->live_bytes);
	uint64_t gigabytes = live > 0 ? (uint64_t)live >> 30 : 0;

	return (LEAST_LIMIT_MS + gigabytes * LIMIT_MS_PER_GB) * UINT64_C(1000000);
}

/*
 * A program that was killed meanwhile: its memory is the system's again as soon as we and the copy have gone. The keeper
 * is a child of the process, not of a thread.
 */
static bool is_deserted(int32_t parent)
{
	return parent && lw_syscall(SYS_getppid, 0) != parent;
}

/* Until the scanner has ended, by itself or by us. */
static void wait_for(int scanner, int32_t parent)
{
	uint64_t end_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) + limit_ns();
	uint32_t poll_us = FIRST_POLL_US, why = LW_SCAN_WHY_CRASH;

	while (lw_syscall(SYS_wait4, scanner, 0, NO_HANG | WALL, 0) == 0) {
		if (why == LW_SCAN_WHY_CRASH && (lw_sys_clock_ns(CLOCK_MONOTONIC) > end_ns || is_deserted(parent))) {
			(void)lw_syscall(SYS_kill, scanner, SIGNAL_KILL);
			why = LW_SCAN_WHY_TIME;
		}
		sleep_us(poll_us);
		poll_us = poll_us < MAX_POLL_US ? poll_us * 5 / 4 : MAX_POLL_US;
	}
	if (lw_load_acquire(&lw_box->scan.outcome) == LW_SCAN_OUTCOME_NONE) {
		lw_store(&lw_box->scan.why, why);
		lw_store_release(&lw_box->scan.state, LW_SCAN_FAILED);
	}
}

static bool has_stack(void)
{
	if (!keeper.stack)
		keeper.stack = lw_mem_map(STACK_BYTES, "leakwatch keeper");
	return keeper.stack;
}

static void run_shared(void *plan)
{
	lw_scan_child(plan);
}

/* Pages are locked into memory as soon as they are mapped: the scanner's reserves would be too. */
static bool is_all_locked(void)
{
	unsigned char *page = lw_mem_map(4096, "leakwatch page"), is_there = 1;

	if (!page)
		return true;
	if (lw_syscall(SYS_mincore, page, 4096, &is_there) < 0)
		is_there = 1;
	lw_mem_unmap(page, 4096);
	return is_there & 1;
}

bool lw_scan_may_share(uint64_t needed_bytes)
{
	return needed_bytes <= MOST_SHARED && has_stack() && !is_all_locked();
}

/* The copy is made here; in it this does not return. */
static LW_NOINLINE int start(const struct lw_scan_plan *plan)
{
	static int32_t tid;
	int scanner;

	lw_store(&lw_box->scan.outcome, LW_SCAN_OUTCOME_NONE);
	if (lw_load(&lw_box->scan.state) != LW_SCAN_DONE)
		lw_store_release(&lw_box->scan.state, LW_SCAN_RUNNING);
	if (plan->is_shared)
		return (int)lw_sys_clone(CLONE_VM | CLONE_UNTRACED, keeper.stack + STACK_BYTES, &tid,
				(void *)lw_thread_pointer(), run_shared, (void *)(uintptr_t)plan);
	scanner = (int)lw_syscall(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0);
	if (scanner == 0)
		lw_scan_child(plan);
	return scanner;
}

void lw_scan_once(const struct lw_scan_plan *plan, void (*thaw)(void))
{
	int scanner = start(plan);

	if (thaw)
		thaw();
	lw_box->scan.pause_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) - plan->stopped_ns;
	if (scanner > 0)
		wait_for(scanner, plan->parent);
	else
		lw_scan_refuse(LW_SCAN_WHY_CLONE);
}

static void thaw(void)
{
	lw_scan_thaw();
	lw_scan_unpark();
}

/* The other threads stand still, if that can be had in one way or the other. */
static void freeze(struct lw_scan_plan *plan)
{
	uint64_t waits_since_ns = lw_box->scan.began_mono_ns;
	bool is_all = false;

	plan->stopped_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
	if (plan->freeze == LW_FREEZE_PTRACE)
		is_all = lw_scan_freeze(plan, keeper.spare);
	if (!is_all && plan->freeze != LW_FREEZE_NONE && plan->nr_threads == keeper.nr_known) {
		lw_scan_thaw();
		is_all = lw_scan_park(plan, keeper.spare);
	}
	if (keeper.spare)
		plan->stopped_ns = waits_since_ns;
	if (!is_all)
		plan->flags |= LW_SCAN_APPROXIMATE;
}

/* Mapped anew for each scan, so that nothing in it is old. */
static unsigned char *map_vectors(void)
{
	long at = lw_syscall(SYS_mmap, 0, VECTORS_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return lw_sys_failed(at) ? NULL : (unsigned char *)at;
}

static void scan(enum lw_scan_step step)
{
	struct lw_scan_plan *plan = keeper.plan;

	plan->nr_threads = keeper.nr_known;
	plan->flags = keeper.flags;
	plan->step = step;
	plan->parent = plan->pid;
	plan->hot = lw_hot;
	lw_box->scan.began_mono_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
	if (!lw_scan_has_memory(lw_scan_needed_bytes())) {
		lw_store(&lw_box->scan.outcome, LW_SCAN_OUTCOME_BAD);
		lw_scan_refuse(LW_SCAN_WHY_MEMORY);
		return;
	}
	plan->vectors = map_vectors();
	freeze(plan);
	lw_box->scan.nr_threads = (uint32_t)(plan->nr_threads ? plan->nr_threads - 1 : 0);
	lw_scan_once(plan, thaw);
	if (plan->vectors)
		(void)lw_syscall(SYS_munmap, plan->vectors, VECTORS_BYTES);
	plan->vectors = NULL;
}

/* A thread that a viewer has stopped cannot be stopped by us. A viewer that died has let go, but cannot say so. */
static void wait_for_viewers(void)
{
	for (uint32_t us = 0; us < MOST_KNOCK_US && lw_load_acquire(&lw_box->scan.nr_knocking); us += KNOCK_POLL_US)
		sleep_us(KNOCK_POLL_US);
}

static void scan_twice(void)
{
	uint32_t request = lw_load(&lw_box->scan.request);
	struct lw_scan_plan *plan = keeper.plan;
	long at = lw_syscall(SYS_mmap, 0, LW_SCAN_LIST_BYTES, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (lw_sys_failed(at)) {
		lw_scan_refuse(LW_SCAN_WHY_MEMORY);
		lw_store_release(&lw_box->scan.served, request);
		return;
	}
	plan->list = (uint64_t *)at;
	wait_for_viewers();
	scan(LW_SCAN_STEP_FIRST);
	if (lw_load_acquire(&lw_box->scan.outcome) == LW_SCAN_OUTCOME_GOOD) {
		lw_sys_sleep_ms(plan->flags & LW_SCAN_APPROXIMATE ? BETWEEN_MS : BETWEEN_STOPPED_MS);
		scan(LW_SCAN_STEP_SECOND);
	}
	lw_store_release(&lw_box->scan.served, request);
	plan->list = NULL;
	(void)lw_syscall(SYS_munmap, at, LW_SCAN_LIST_BYTES);
}

static __attribute__((noreturn)) void run(void *unused)
{
	(void)unused;
	/* an own table of descriptors, with nothing of the program's in it */
	if (lw_syscall(SYS_close_range, 0, ~0u, 2 /* CLOSE_RANGE_UNSHARE */) < 0)
		(void)lw_syscall(SYS_unshare, CLONE_FILES);
	scan_twice();
	for (;;)
		(void)lw_syscall(SYS_exit, 0);
}

int lw_scan_keeper_start(struct lw_scan_plan *plan, bool is_waiting)
{
	static int32_t tid;
	uint64_t mask;
	long pid;

	if (!has_stack())
		return -ENOMEM;
	keeper.plan = plan;
	keeper.nr_known = plan->nr_threads;
	keeper.flags = plan->flags;
	keeper.spare = is_waiting ? plan->tid : 0;
	lw_sys_block_signals(&mask);
	pid = lw_sys_clone(CLONE_VM | CLONE_SIGHAND | CLONE_FILES | CLONE_UNTRACED, keeper.stack + STACK_BYTES, &tid,
			(void *)lw_thread_pointer(), run, NULL);
	lw_sys_restore_signals(&mask);
	return (int)pid;
}
