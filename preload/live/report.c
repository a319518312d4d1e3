/* SPDX-License-Identifier: MIT */
/* report.c - the end of the target; see report.h. */
#include "preload/live/report.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>

#include "preload/base/hot.h"
#include "preload/base/log.h"
#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/live/raw.h"
#include "preload/live/spawn.h"
#include "preload/record/track.h"
#include "preload/share/box.h"
#include "preload/share/emit.h"
#include "preload/share/report.h"

enum {
	REPORTER_WAIT_MS = 60000, /* a report of many sites with big debug information takes a while */
	OTHER_END_WAIT_MS = 2000, /* a second thread that ends the process meanwhile */
	POLL_MS = 10,
	CLOSED_PIPE = 0x10 | 0x20 /* POLLHUP | POLLNVAL */,
};

static const struct lw_options *options;

void lw_report_init(const struct lw_options *settings)
{
	options = settings;
}

static void sleep_ms(uint32_t ms)
{
	struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	(void)lw_syscall(SYS_nanosleep, &t, 0);
}

/* Does anything stay allocated, or was anything wrong? Quick: no names are known here. */
static bool has_something_to_say(void)
{
	uint32_t nr_sites = lw_load_acquire(&lw_box->nr_sites);

	if (lw_load(&lw_box->nr_events))
		return true;
	for (uint32_t site = 0; site < nr_sites; site++) {
		struct lw_count count = lw_emit_site_count(lw_box, lw_box->total_bytes, site);

		if (count.alloc_blocks != count.freed_blocks)
			return true;
	}
	return false;
}

/* Has this process anywhere to write to? A child writes only to files of its own, unless followed. */
static bool has_a_place(void)
{
	if (lw_box->flags & (LW_REGION_ROOT | LW_REGION_WATCHED))
		return true;
	return lw_options_has_pid(options->json) || lw_options_has_pid(options->log_path);
}

static bool is_report_wanted(void)
{
	if (options->report == LW_REPORT_NEVER || !has_a_place())
		return false;
	if (options->json[0] || options->report == LW_REPORT_ALWAYS || options->verbose)
		return true;
	return has_something_to_say();
}

static char *put_text(char *at, const char *text)
{
	return stpcpy(at, text);
}

static char *put_number(char *at, uint64_t value)
{
	char digits[20];
	unsigned nr = 0;

	do
		digits[nr++] = (char)('0' + value % 10);
	while (value /= 10);
	while (nr)
		*at++ = digits[--nr];
	*at = 0;
	return at;
}

static const char *end_name(enum lw_end how)
{
	return how == LW_END_QUICK_EXIT ? "--state=quick_exit" : how == LW_END__EXIT ? "--state=_exit"
										      : "--state=exit";
}

/* Waits until the reporter has written its word or is gone; false: no report was made. */
static bool wait_for(int reporter, int fd, struct lw_report_done *done)
{
	uint64_t waited_ms = 0;
	long got = -EAGAIN;

	memset(done, 0, sizeof(*done));
	while (waited_ms < REPORTER_WAIT_MS && got == -EAGAIN) {
		struct pollfd ready = { fd, POLLIN, 0 };
		struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };

		if (fd < 0) { /* no descriptor was to be had: watch the process itself */
			if (lw_syscall(SYS_kill, reporter, 0) < 0)
				return true;
			sleep_ms(1);
			waited_ms++;
			continue;
		}
		if (lw_syscall(SYS_ppoll, &ready, 1, &pause, 0, 8) <= 0) {
			waited_ms += POLL_MS;
			continue;
		}
		got = lw_sys_read(fd, done, sizeof(*done));
	}
	return got == sizeof(*done) && done->magic == LW_REPORT_DONE_MAGIC;
}

/* Starts the reporter and waits for it. */
static bool run_reporter(enum lw_end how, struct lw_report_done *done)
{
	char path[LW_SPAWN_PATH_BYTES], shmid[32], done_fd[32];
	const char *argv[] = { path, "--report", shmid, end_name(how), done_fd, NULL };
	int fds[2] = { -1, -1 }, pid;
	bool is_good;

	if (lw_box->shmid < 0 || !lw_spawn_find("leakwatch-snapshot", path, sizeof(path)))
		return false;
	(void)put_number(put_text(shmid, "--shmid="), (uint64_t)lw_box->shmid);
	if (lw_syscall(SYS_pipe2, fds, O_CLOEXEC) < 0)
		fds[0] = fds[1] = -1;
	if (fds[1] >= 0)
		(void)put_number(put_text(done_fd, "--done-fd="), (uint64_t)fds[1]);
	else
		argv[4] = NULL;
	pid = lw_spawn(argv, fds[1], lw_log_is_same_file());
	if (fds[1] >= 0)
		lw_sys_close(fds[1]);
	is_good = pid > 0 && wait_for(pid, fds[0], done);
	if (fds[0] >= 0)
		lw_sys_close(fds[0]);
	return is_good;
}

/* Another thread is at it already: the process may go when its report is written, or soon. */
static void wait_for_other_end(void)
{
	for (uint32_t waited_ms = 0; waited_ms < OTHER_END_WAIT_MS; waited_ms += POLL_MS) {
		if (lw_load_acquire(&lw_box->state) == LW_STATE_REPORTED)
			return;
		sleep_ms(POLL_MS);
	}
}

static int report(enum lw_end how, int status)
{
	struct lw_report_done done = { 0 };
	uint64_t started_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);

	lw_box->end_kind = how;
	lw_box->exit_status = status;
	lw_box->ended_mono_ns = started_ns;
	if (!is_report_wanted())
		return status;
	lw_track_finish();
	lw_box->own_bytes = lw_mem_used_bytes() + lw_mem_resident_pages(lw_box, lw_box->total_bytes) * 4096;
	lw_box->report_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) - started_ns;
	if (!run_reporter(how, &done)) {
		lw_raw_report(options, &done);
	}
	return options->exitcode && done.leaked_blocks + done.nr_mismatches ? (int)options->exitcode : status;
}

int lw_report_end(enum lw_end how, int status)
{
	uint32_t running = LW_STATE_RUNNING;
	int saved_errno = errno;

	/* a vfork child (other pid, same memory) or a forked one that never allocated: not our end */
	if (!options || !lw_box || !lw_load(&lw_hot.active) || lw_box->pid != lw_sys_getpid())
		return status;
	if (!__atomic_compare_exchange_n(&lw_box->state, &running, LW_STATE_ENDING, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (running == LW_STATE_ENDING)
			wait_for_other_end();
		return status;
	}
	status = report(how, status);
	lw_store_release(&lw_box->state, LW_STATE_REPORTED);
	lw_box_remove();
	errno = saved_errno;
	return status;
}
