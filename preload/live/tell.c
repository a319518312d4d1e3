/* SPDX-License-Identifier: MIT */
/* tell.c - saying things while the program runs; see tell.h. */
#include "preload/live/tell.h"

#include <errno.h>

#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/live/raw.h"
#include "preload/live/reporter.h"
#include "preload/live/scan.h"
#include "preload/record/count.h"
#include "preload/record/track.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"

enum {
	MAX_TOLD = 20,		/* events told at once by one process; the rest wait for its end */
	MAX_WAIT_MS = 2000,	/* for one of them */
	MAX_ALL_WAITS_MS = 6000, /* for all of them */
};

static const struct lw_options *options;
static uint32_t nr_told, waited_ms;

void lw_tell_init(const struct lw_options *settings)
{
	options = settings;
}

/* The text goes to stderr only from the process a person started; a child needs a file of its own. */
static bool may_tell(void)
{
	if (lw_sandboxed() || !options || !lw_box || options->report == LW_REPORT_NEVER || lw_own.pid != lw_sys_getpid())
		return false;
	return lw_box->flags & (LW_REGION_ROOT | LW_REGION_WATCHED) || lw_options_has_pid(options->log_path);
}

void lw_tell_event(uint32_t index)
{
	uint32_t left_ms = MAX_ALL_WAITS_MS - lw_load(&waited_ms);
	uint64_t began_ns;
	int saved_errno = errno;

	if (!may_tell() || left_ms > MAX_ALL_WAITS_MS ||
			__atomic_fetch_add(&nr_told, 1, __ATOMIC_RELAXED) >= MAX_TOLD)
		return;
	began_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
	if (!lw_reporter_tell(index, left_ms < MAX_WAIT_MS ? left_ms : MAX_WAIT_MS))
		lw_raw_event(index);
	lw_add(&waited_ms, (uint32_t)((lw_sys_clock_ns(CLOCK_MONOTONIC) - began_ns) / 1000000));
	errno = saved_errno;
}

void lw_tell_all(void)
{
	struct lw_report_done done;
	enum lw_reporter_end end;
	int saved_errno = errno;

	if (lw_sandboxed() || !options || !lw_box || lw_own.pid != lw_sys_getpid() || !lw_track_enter())
		return;
	lw_count_flush(&lw_self);
	end = lw_reporter_run(LW_END_NONE, false, &done);
	if (end != LW_REPORTER_DONE)
		lw_raw_report(options, lw_reporter_why(end), &done);
	lw_track_leave();
	errno = saved_errno;
}

bool lw_tell_lost(const uint64_t regs[LW_NR_REGS], uint64_t *bytes, uint64_t *blocks)
{
	int saved_errno = errno;
	bool is_done;

	*bytes = *blocks = 0;
	if (lw_sandboxed() || !options || !lw_box || lw_own.pid != lw_sys_getpid() || !lw_track_enter())
		return false;
	is_done = lw_scan_now(regs, bytes, blocks);
	lw_track_leave();
	errno = saved_errno;
	return is_done;
}
