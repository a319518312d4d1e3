/* SPDX-License-Identifier: MIT */
/* report.c - the end of the target; see report.h. */
#include "preload/live/report.h"

#include <errno.h>

#include "preload/base/hot.h"
#include "preload/base/log.h"
#include "preload/base/mem.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/live/cleaner.h"
#include "preload/live/narrate.h"
#include "preload/live/raw.h"
#include "preload/live/reporter.h"
#include "preload/live/scan.h"
#include "preload/record/history.h"
#include "preload/record/threads.h"
#include "preload/record/track.h"
#include "preload/share/box.h"
#include "preload/share/emit.h"
#include "preload/share/limits.h"
#include "preload/share/place.h"
#include "preload/share/report.h"

enum {
	FOLD_WAIT_MS = 200, /* of a thread that ends at the same time: a few microseconds, if it runs */
	OTHER_END_WAIT_MS = 2000, /* a second thread that ends the process meanwhile */
	POLL_MS = 10,
};

static const struct lw_options *options;

void lw_report_init(const struct lw_options *settings)
{
	options = settings;
}

/* A thread that is just ending carries its counters over: the sum, and the reporter's, come after that. */
static void wait_for_folds(void)
{
	for (int ms = 0; ms < FOLD_WAIT_MS && lw_threads_folds_ended() != lw_threads_folds_begun(); ms++)
		lw_sys_sleep_ms(1);
}

/* What was not recorded may be a leak, or a wrong release; the other losses cost names, not truth. */
static bool is_something_missing(void)
{
	return lw_load(&lw_box->dropped[LW_DROP_BLOCKS]) || lw_load(&lw_box->dropped[LW_DROP_COUNTERS]) ||
	       lw_load(&lw_box->dropped[LW_DROP_EVENTS]);
}

/* Does anything stay allocated, was anything wrong or freed by exit alone? Quick: no names are known here. */
static bool has_something_to_say(void)
{
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites), nr_folds = lw_threads_folds_ended();

	if (lw_load(&lw_own.nr_events) || is_something_missing())
		return true;
	for (uint32_t site = 0; site < nr_sites; site++) {
		struct lw_count count = lw_emit_site_count(lw_box, lw_own.total_bytes, site);

		if (count.alloc_blocks != count.freed_blocks)
			return true;
	}
	/* one that began meanwhile may have been in neither row: the reporter will see */
	return lw_threads_folds_begun() != nr_folds || lw_history_may_be_held();
}

static bool is_report_wanted(void)
{
	if (!lw_place_is_given(options, lw_box->flags))
		return false;
	wait_for_folds();
	if (options->json[0] || options->report == LW_REPORT_ALWAYS || options->verbose)
		return true;
	return has_something_to_say();
}

/* Another thread is at it already: the process may go when its report is written, or soon. */
static void wait_for_other_end(void)
{
	for (uint32_t waited_ms = 0; waited_ms < OTHER_END_WAIT_MS; waited_ms += POLL_MS) {
		if (lw_load_acquire(&lw_box->state) == LW_STATE_REPORTED)
			return;
		lw_sys_sleep_ms(POLL_MS);
	}
}

static bool has_file(void)
{
	return options->json[0] || options->log_path[0];
}

/*
 * What this process cannot start any more, or not from where it is now, or what fell under its limits, the cleaner
 * can, if it may write to a file.
 */
static bool is_cleaners_to_write(enum lw_reporter_end end)
{
	return (end == LW_REPORTER_REFUSED || (end == LW_REPORTER_NONE && lw_cleaner_is_elsewhere()) ||
		       (end == LW_REPORTER_FAILED && lw_limits_poor())) &&
	       has_file() && lw_cleaner_is_there();
}

/*
 * A reporter whose files may not grow would tell stderr at best: then it is not started, and the cleaner
 * writes them. But the status that `exitcode` asks for can only come from here.
 */
static bool must_write_files(void)
{
	return has_file() && !options->exitcode && lw_limits_poor() & 1u << LW_LIMIT_FILE_BYTES &&
	       lw_cleaner_is_there();
}

static int report(enum lw_end how, int status, const uint64_t regs[LW_NR_REGS], bool *is_left)
{
	enum lw_reporter_end end;
	struct lw_report_done done = { 0 };
	uint64_t started_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);

	lw_box->end_kind = how;
	lw_box->exit_status = status;
	lw_box->ended_mono_ns = started_ns;
	if (!is_report_wanted())
		return status;
	lw_track_finish();
	if (options->scan == LW_SCAN_OPTION_EXIT && has_something_to_say())
		lw_scan_at_exit(regs, options);
	lw_narrate_end(options);
	lw_box->own_bytes = lw_mem_used_bytes() + lw_box_used_bytes();
	lw_box->report_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) - started_ns;
	end = lw_reporter_run(how, must_write_files(), &done);
	*is_left = is_cleaners_to_write(end);
	if (*is_left)
		return status;
	if (end != LW_REPORTER_DONE) {
		lw_raw_report(options, lw_reporter_why(end), &done);
		return status; /* without names libc's own memory is not told from a leak */
	}
	return options->exitcode && done.leaked_blocks + done.nr_mismatches ? (int)options->exitcode : status;
}

/*
 * In a sandbox each system call may be the last, and another user than the one we started as cannot
 * read the region or write where we could: the cleaner, outside, writes the report from the region.
 */
static bool is_left_to_cleaner(void)
{
	if (lw_sandboxed())
		return true;
	return has_file() && lw_own.shmid >= 0 && (uint32_t)lw_syscall(SYS_geteuid, 0) != lw_own.uid;
}

static LW_NOINLINE int end_once(enum lw_end how, int status, const uint64_t regs[LW_NR_REGS])
{
	uint32_t running = LW_STATE_RUNNING;
	int saved_errno = errno;
	bool is_left = false;

	/* a vfork child (other pid, same memory) or a forked one that never allocated: not our end */
	if (!options || !lw_box || !lw_load(&lw_hot.active) ||
			(!lw_sandboxed() && lw_own.pid != lw_sys_getpid()))
		return status;
	if (!__atomic_compare_exchange_n(&lw_box->state, &running, LW_STATE_ENDING, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (running == LW_STATE_ENDING)
			wait_for_other_end();
		return status;
	}
	if (is_left_to_cleaner()) {
		lw_box->end_kind = how;
		lw_box->exit_status = status;
		lw_store_release(&lw_box->state, LW_STATE_RUNNING); /* it reports what is not REPORTED */
		return status;
	}
	status = report(how, status, regs, &is_left);
	lw_store_release(&lw_box->state, is_left ? LW_STATE_RUNNING : LW_STATE_REPORTED);
	if (!is_left)
		lw_box_remove();
	errno = saved_errno;
	return status;
}

/* Kept small: from this frame up the stack is the program's, and its registers are in the frame. */
LW_NOINLINE int lw_report_end(enum lw_end how, int status)
{
	uint64_t regs[LW_NR_REGS] = { 0 };

	lw_registers_read(regs);
	status = end_once(how, status, regs);
	__asm__ volatile("" : : "r"(regs) : "memory"); /* no tail call: the frame stays */
	return status;
}
