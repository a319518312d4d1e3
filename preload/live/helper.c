/* SPDX-License-Identifier: MIT */
/*
 * helper.c - the loop that serves the viewers; see helper.h.
 *
 * Each viewer has its own memory of what it was told (share/changes.c) and its own message under
 * construction (post.c), so that they come and go, ask for other intervals and fall behind without
 * each other. What the places of the viewers say is hostile.
 */
#include "preload/live/helper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/live/ages.h"
#include "preload/live/post.h"
#include "preload/live/scan.h"
#include "preload/share/box.h"
#include "preload/share/changes.h"

#define MS UINT64_C(1000000)

enum {
	LOOK_MS = 100,	    /* for events, new viewers, viewers that left */
	CHECK_MS = 500,	    /* for viewers that died, and our target's exec */
	BEAT_MS = 30000,    /* a viewer that gives no sign for so long has no place any more */
	KCMP_VM = 1,
	MOST_TRIES = 16,
	CLOSE_UNSHARE = 2,  /* CLOSE_RANGE_UNSHARE */
	SHARED_FILES = 0x400, /* CLONE_FILES */
	MOST_FDS = 65536,
};

struct watch {
	uint64_t next_ns;    /* next tick */
	uint64_t beat_ns;    /* when `beat` last changed */
	uint32_t beat, nr_resyncs;
	struct lw_post post; /* its token is 0: nobody is here */
	struct lw_changes changes;
};

static struct helper {
	struct watch watches[LW_MAX_VIEWERS];
	struct lw_ages ages;
	uint64_t checked_ns;
	int32_t target, self;
	int pidfd; /* -1 none */
	bool has_exec; /* the target lives in another memory now */
} *helper;

static uint64_t *seen[LW_MAX_VIEWERS];

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	(void)lw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- memory ---- */

bool lw_helper_prepare(void)
{
	uint32_t max_sites = lw_own.max_sites;

	if (!helper)
		helper = lw_mem_map(sizeof(*helper), "leakwatch helper");
	if (!helper)
		return false;
	if (!helper->ages.inverted)
		helper->ages.inverted = lw_mem_map(max_sites * sizeof(uint32_t), "leakwatch helper");
	helper->ages.max_sites = max_sites;
	return helper->ages.inverted != NULL;
}

void lw_helper_forked(void)
{
	lw_store(&lw_box->helper_pid, 0);
}

/* What was written is given back to the system; the room stays for the next. */
static void give_back(void *start, size_t bytes)
{
	if (start)
		(void)lw_syscall(SYS_madvise, start, LW_ALIGN_UP(bytes, (size_t)4096), MADV_DONTNEED);
}

/* ---- viewers ---- */

/* Frees the place, if it is still that viewer's. */
static void vacate(struct lw_viewer *viewer, uint64_t token)
{
	if (__atomic_load_n(&viewer->token, __ATOMIC_ACQUIRE) != token)
		return;
	lw_store(&viewer->is_ready, 0);
	(void)__atomic_compare_exchange_n(&viewer->token, &token, 0, false, __ATOMIC_ACQ_REL,
			__ATOMIC_RELAXED);
}

static void see_off(unsigned place)
{
	struct watch *watch = &helper->watches[place];

	vacate(&lw_box->viewers[place], watch->post.token);
	watch->post.token = 0;
	give_back(seen[place], (size_t)lw_own.max_sites * sizeof(uint64_t));
}

static void welcome(unsigned place, uint64_t token, uint64_t now)
{
	struct watch *watch = &helper->watches[place];
	struct lw_viewer *viewer = &lw_box->viewers[place];

	if (!seen[place])
		seen[place] = lw_mem_map((size_t)lw_own.max_sites * sizeof(uint64_t), "leakwatch helper");
	if (!seen[place]) {
		vacate(viewer, token); /* it reads the region */
		return;
	}
	lw_post_open(&watch->post, viewer, token, (long)place + 1);
	watch->next_ns = 0;
	watch->beat = lw_load(&viewer->beat);
	watch->beat_ns = now;
	watch->nr_resyncs = lw_load(&viewer->nr_resyncs);
	if (!lw_changes_open(&watch->changes, lw_box, lw_own.total_bytes, seen[place], lw_own.max_sites,
			    lw_post_record, &watch->post))
		watch->post.token = 0;
	watch->changes.inverted_oldest = helper->ages.inverted;
}

/* Is the viewer there: its process, or where that has no number here its beat? */
static bool is_there(struct watch *watch, uint64_t now)
{
	const struct lw_viewer *viewer = watch->post.viewer;
	int32_t pid = lw_load(&viewer->pid), ppid;
	uint64_t start_ticks, its_ticks = viewer->start_ticks;

	if (pid > 0 && lw_syscall(SYS_kill, pid, 0) == -ESRCH)
		return false;
	if (pid > 0 && its_ticks && lw_region_proc_stat(pid, &start_ticks, &ppid) && start_ticks != its_ticks)
		return false;
	if (watch->beat != lw_load(&viewer->beat)) {
		watch->beat = lw_load(&viewer->beat);
		watch->beat_ns = now;
	}
	return now - watch->beat_ns < BEAT_MS * MS;
}

/* Comes and goes; false: nobody is at this place. */
static bool attend(unsigned place, bool is_check, uint64_t now)
{
	struct watch *watch = &helper->watches[place];
	struct lw_viewer *viewer = &lw_box->viewers[place];
	uint64_t token = __atomic_load_n(&viewer->token, __ATOMIC_ACQUIRE);

	if (watch->post.token && watch->post.token != token)
		see_off(place);
	if (token && !watch->post.token && lw_load_acquire(&viewer->is_ready))
		welcome(place, token, now);
	if (watch->post.token && is_check && !is_there(watch, now))
		see_off(place);
	return watch->post.token != 0;
}

/* ---- serving ---- */

/* It asks for everything again, or stirs after it was given up. */
static void hear(struct watch *watch)
{
	const struct lw_viewer *viewer = watch->post.viewer;
	uint32_t nr_resyncs = lw_load(&viewer->nr_resyncs);

	if (nr_resyncs == watch->nr_resyncs &&
			!(watch->post.is_stalled && lw_load(&viewer->nr_received) != watch->post.nr_received))
		return;
	watch->nr_resyncs = nr_resyncs;
	watch->post.is_stalled = false;
	watch->post.is_first = true;
	watch->post.used = sizeof(struct lw_wire_tick);
	watch->next_ns = 0;
	lw_changes_reset(&watch->changes);
}

static uint64_t interval_ns(const struct watch *watch)
{
	uint32_t ms = lw_load(&watch->post.viewer->interval_ms);

	ms = ms < LW_LEAST_TICK_MS ? LW_LEAST_TICK_MS : ms > LW_MOST_TICK_MS ? LW_MOST_TICK_MS : ms;
	return ms * MS;
}

static void serve(struct watch *watch, uint64_t now)
{
	hear(watch);
	if (watch->post.is_stalled)
		return;
	/* an interval that was made shorter counts at once */
	if (watch->next_ns > now + interval_ns(watch))
		watch->next_ns = now + interval_ns(watch);
	if (now >= watch->next_ns) {
		watch->next_ns = watch->next_ns + interval_ns(watch) > now && watch->next_ns
						 ? watch->next_ns + interval_ns(watch)
						 : now + interval_ns(watch);
		lw_ages_refresh(&helper->ages);
		if (lw_changes_tick(&watch->changes, now))
			(void)lw_post_flush(&watch->post, true);
	} else if (lw_changes_has_events(&watch->changes)) {
		if (lw_changes_events(&watch->changes))
			(void)lw_post_flush(&watch->post, true);
	}
}

static unsigned serve_all(bool is_check, uint64_t now)
{
	unsigned nr = 0;

	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++) {
		if (!attend(place, is_check, now))
			continue;
		nr++;
		serve(&helper->watches[place], now);
		if (helper->watches[place].post.is_queue_gone) {
			lw_box_set_queue(-1);
			return 0;
		}
	}
	return nr;
}

/* ---- the target ---- */

/* Our parent until it is dead, whatever else may happen to it. */
static bool is_target_alive(void)
{
	return lw_syscall(SYS_getppid, 0) == helper->target;
}

/*
 * Who shares memory has as much of it, at any moment. Only where it changes all the while does this not answer,
 * and that is no memory of ours alone.
 */
static bool has_as_much_memory(void)
{
	for (int i = 0; i < MOST_TRIES; i++) {
		uint64_t before, its, after;

		if (!lw_region_proc_memory(0, &before) || !lw_region_proc_memory(helper->target, &its) ||
				!lw_region_proc_memory(0, &after))
			return false;
		if (before == after)
			return its == before;
	}
	return true;
}

/*
 * Does the target still run in the memory we share? Unknown counts as no: we would keep it for ever. The question
 * is not allowed to all: not about who gave up rights, nor in many a container.
 */
static bool is_memory_shared(void)
{
	long differs = lw_syscall(SYS_kcmp, helper->target, helper->self, KCMP_VM, 0, 0);

	return differs < 0 ? has_as_much_memory() : differs == 0;
}

/* Until the next tick, or LOOK_MS; less when the target ends. */
static void sleep_a_little(uint64_t now)
{
	struct timespec pause = { .tv_nsec = LOOK_MS * MS };
	struct pollfd target = { helper->pidfd, POLLIN, 0 };

	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++) {
		const struct watch *watch = &helper->watches[place];

		if (watch->post.token && watch->next_ns < now + (uint64_t)pause.tv_nsec)
			pause.tv_nsec = watch->next_ns > now ? (long)(watch->next_ns - now) : 0;
	}
	if (pause.tv_nsec < (long)MS)
		pause.tv_nsec = MS;
	(void)lw_syscall(SYS_ppoll, &target, helper->pidfd >= 0, &pause, 0, 8);
}

/* Nobody is left: says so, and looks once more for one who came meanwhile. */
static bool may_go(void)
{
	(void)__atomic_exchange_n(&lw_box->is_watched, 0, __ATOMIC_SEQ_CST);
	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++) {
		if (__atomic_load_n(&lw_box->viewers[place].token, __ATOMIC_SEQ_CST) &&
				lw_load(&lw_own.msqid) >= 0) {
			lw_store(&lw_box->is_watched, 1);
			return false;
		}
	}
	return true;
}

/* A place that was taken, but never made ready, must not keep us. */
static void sweep(void)
{
	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++) {
		struct lw_viewer *viewer = &lw_box->viewers[place];

		if (!lw_load(&viewer->is_ready))
			lw_store(&viewer->token, 0);
	}
}

static void watch_target(void)
{
	unsigned nr_idle = 0;

	while (is_target_alive()) {
		uint64_t now = now_ns();
		bool is_check = now - helper->checked_ns >= CHECK_MS * MS;

		if (is_check) {
			helper->checked_ns = now;
			helper->has_exec = !is_memory_shared();
			if (helper->has_exec && is_target_alive()) {
				lw_store(&lw_box->is_watched, 0); /* or the next allocation starts another */
				return;
			}
		}
		if (serve_all(is_check, now)) {
			nr_idle = 0;
		} else if (lw_load(&lw_own.msqid) < 0 || ++nr_idle > 2 * CHECK_MS / LOOK_MS) {
			sweep();
			if (may_go())
				return;
			nr_idle = 0;
		}
		sleep_a_little(now);
	}
	helper->has_exec = false;
}

/* ---- start and end ---- */

/*
 * Leaves the target's table of descriptors without a copy. Where that is refused a copy is made and emptied;
 * where that is refused too we are of no use.
 */
static bool drop_descriptors(void)
{
	if (lw_syscall(SYS_close_range, 0, ~0u, CLOSE_UNSHARE) == 0)
		return true;
	if (lw_syscall(SYS_unshare, SHARED_FILES) < 0)
		return false;
	if (lw_syscall(SYS_close_range, 0, ~0u, 0) < 0) {
		for (int fd = 0; fd < MOST_FDS; fd++)
			lw_sys_close(fd);
	}
	return true;
}

static void finish(void)
{
	uint64_t now = now_ns();

	if (helper->has_exec || is_target_alive())
		return;
	if (lw_load(&lw_box->state) < LW_STATE_REPORTED) {
		lw_ages_complete_region(&helper->ages);
		lw_scan_after_death();
	}
	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++) {
		struct watch *watch = &helper->watches[place];

		if (!watch->post.token || watch->post.is_stalled)
			continue;
		if (lw_changes_tick(&watch->changes, now) && lw_dump_bye(&watch->changes.dump))
			(void)lw_post_flush(&watch->post, true);
	}
}

static void clean_up(void)
{
	for (unsigned place = 0; place < LW_MAX_VIEWERS; place++)
		give_back(seen[place], (size_t)lw_own.max_sites * sizeof(uint64_t));
	give_back(helper->ages.inverted, (size_t)helper->ages.max_sites * sizeof(uint32_t));
	lw_store(&lw_box->helper_pid, 0);
}

void lw_helper_run(void *unused)
{
	(void)unused;
	if (drop_descriptors()) {
		(void)lw_syscall(SYS_setsid, 0);
		for (unsigned place = 0; place < LW_MAX_VIEWERS; place++)
			helper->watches[place].post.token = 0;
		helper->ages.next_ns = helper->checked_ns = 0;
		helper->target = lw_own.pid;
		helper->self = lw_sys_getpid();
		helper->pidfd = (int)lw_syscall(SYS_pidfd_open, helper->target, 0);
		lw_store(&lw_box->helper_pid, helper->self);
		watch_target();
		finish();
		clean_up();
	} else {
		lw_store(&lw_box->is_watched, 0);
	}
	for (;;)
		(void)lw_syscall(SYS_exit, 0);
}
