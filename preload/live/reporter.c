/* SPDX-License-Identifier: MIT */
/* reporter.c - running leakwatch-snapshot at the end of the target; see reporter.h. */
#include "preload/live/reporter.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "preload/base/log.h"
#include "preload/base/sys.h"
#include "preload/live/spawn.h"
#include "preload/share/box.h"
#include "preload/share/boxfile.h"
#include "preload/share/emit.h"
#include "preload/share/limits.h"
#include "preload/share/process.h"

enum {
	REPORTER_WAIT_MS = 20000, /* a report of many sites with big debug information takes a while */
	IDLE_WAIT_MS = 3000,	  /* for one that does nothing at all: stopped, or stuck for good */
	POLL_MS = 10,
	LOOK_MS = 250,		  /* between two looks at what it does */
};

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
	if (how == LW_END_NONE)
		return "--state=live";
	return how == LW_END_QUICK_EXIT ? "--state=quick_exit" : how == LW_END__EXIT ? "--state=_exit"
										      : "--state=exit";
}

/* What the reporter was last seen to have done, and when. */
struct work {
	uint64_t done, seen_ms;
};

/* Has it done nothing for so long that it never will? Waiting for a disk, or for the network, is work. */
static bool is_stuck(int reporter, struct work *last, uint64_t now_ms)
{
	bool is_at_disk = false;
	uint64_t done = 0;

	if (!lw_region_proc_work(reporter, &done, &is_at_disk) || done != last->done || is_at_disk ||
			lw_process_env("LEAKWATCH_DEBUGINFOD")) {
		*last = (struct work){ done, now_ms };
		return false;
	}
	return now_ms - last->seen_ms > IDLE_WAIT_MS;
}

/*
 * Without a descriptor the region says when all is written. Gone without that it did nothing: it found
 * no descriptor either, say. A file, or one that only tells of an event, has no such mark.
 */
static long look_for_word(int reporter, bool is_marked, struct lw_report_done *done)
{
	bool is_gone = lw_syscall(SYS_kill, reporter, 0) < 0;

	if (is_marked && lw_load_acquire(&lw_box->state) != LW_STATE_REPORTED)
		return is_gone ? 0 : -EAGAIN;
	if (!is_marked && !is_gone)
		return -EAGAIN;
	done->magic = LW_REPORT_DONE_MAGIC;
	return (long)sizeof(*done);
}

/* Its word, if it has come: -EAGAIN not yet, 0 never. */
static long take_word(int reporter, int fd, bool is_marked, struct lw_report_done *done)
{
	struct pollfd ready = { fd, POLLIN, 0 };
	struct timespec pause = { .tv_nsec = POLL_MS * 1000000 };

	if (fd >= 0)
		return lw_syscall(SYS_ppoll, &ready, 1, &pause, 0, 8) > 0
				       ? lw_sys_read(fd, done, sizeof(*done))
				       : -EAGAIN;
	lw_sys_sleep_ms(POLL_MS);
	return look_for_word(reporter, is_marked, done);
}

/* Waits until the reporter has written its word or is gone, or time is up. */
static enum lw_reporter_end wait_for(int reporter, int fd, bool is_marked, uint32_t wait_ms, struct lw_report_done *done)
{
	struct work work = { 0, 0 };
	long got;

	memset(done, 0, sizeof(*done));
	for (uint64_t waited_ms = 0; waited_ms < wait_ms; waited_ms += POLL_MS) {
		got = take_word(reporter, fd, is_marked, done);
		if (got != -EAGAIN)
			return got == sizeof(*done) && done->magic == LW_REPORT_DONE_MAGIC ? LW_REPORTER_DONE : LW_REPORTER_FAILED;
		if (waited_ms % LOOK_MS == 0 && is_stuck(reporter, &work, waited_ms))
			break;
	}
	return LW_REPORTER_LATE;
}

/* Sends one record; false when the reporter does not take it any more. */
static bool send_record(void *context, const struct lw_wire_head *record)
{
	const char *at = (const char *)record;
	const int *fd = context;

	for (uint32_t sent = 0; sent < record->bytes;) {
		struct pollfd ready = { *fd, POLLOUT, 0 };
		struct timespec pause = { .tv_sec = REPORTER_WAIT_MS / 1000 };
		long wrote;

		if (lw_syscall(SYS_ppoll, &ready, 1, &pause, 0, 8) <= 0 || !(ready.revents & POLLOUT))
			return false;
		wrote = lw_sys_write(*fd, at + sent, record->bytes - sent);
		if (wrote <= 0 && wrote != -EAGAIN)
			return false;
		sent += wrote > 0 ? (uint32_t)wrote : 0;
	}
	return true;
}

/* Pipes of a run; -1 where none is needed or to be had. */
struct pipes {
	int done[2], records[2];
};

/* Not below 3: a program that has closed 0, 1 or 2 gets those, and they are closed in the reporter. */
static void open_pipe(int fds[2])
{
	if (lw_syscall(SYS_pipe2, fds, O_CLOEXEC) < 0)
		fds[0] = fds[1] = -1;
	for (int i = 0; i < 2; i++) {
		int low = fds[i];

		if (low < 0 || low > 2)
			continue;
		fds[i] = (int)lw_syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 3);
		lw_sys_close(low);
	}
}

static void open_pipes(struct pipes *pipes, bool needs_records)
{
	*pipes = (struct pipes){ { -1, -1 }, { -1, -1 } };
	open_pipe(pipes->done);
	if (needs_records)
		open_pipe(pipes->records);
	if (pipes->records[1] >= 0)
		(void)lw_syscall(SYS_fcntl, pipes->records[1], F_SETFL, O_NONBLOCK);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		lw_sys_close(*fd);
	*fd = -1;
}

/* A reporter that goes before it has read all must not raise SIGPIPE here. */
static void send_records(struct pipes *pipes)
{
	uint64_t mask;

	close_fd(&pipes->records[0]);
	if (pipes->records[1] < 0)
		return;
	lw_sys_block_signals(&mask);
	(void)lw_emit_region(lw_box, lw_own.total_bytes, lw_sys_clock_ns(CLOCK_MONOTONIC), send_record,
			&pipes->records[1]);
	lw_sys_take_pipe_signal(mask);
	lw_sys_restore_signals(&mask);
	close_fd(&pipes->records[1]);
}

/* An orphan, unless it would be given to a watched program, which may count its children. */
static bool is_to_be_child(void)
{
	return lw_load(&lw_box->flags) & LW_REGION_UNDER_REAPER;
}

static int begin(const char *const *argv, const struct pipes *pipes, bool must_write_files, uint64_t *before)
{
	const struct lw_spawn_needs needs = { LW_LIMITS_REPORTER_FILES,
		must_write_files ? 1u << LW_LIMIT_FILE_BYTES : 0 };

	if (is_to_be_child())
		return lw_spawn_child(argv, pipes->records[0], pipes->done[1], lw_log_is_same_file(), needs, before);
	return lw_spawn(argv, pipes->records[0], pipes->done[1], lw_log_is_same_file(), needs);
}

static int refusal; /* of the last one, -errno */

const char *lw_reporter_why(enum lw_reporter_end end)
{
	if (end == LW_REPORTER_REFUSED && refusal == -EMFILE)
		return "the limit of open files is too low for leakwatch-snapshot";
	if (end == LW_REPORTER_REFUSED && refusal == -EAGAIN)
		return "the limit of processes leaves none for leakwatch-snapshot";
	if (end == LW_REPORTER_REFUSED && refusal == -EFBIG)
		return "the limit of file sizes is too low for leakwatch-snapshot";
	return "leakwatch-snapshot is missing or did not do it";
}

/* what: the option that says which report is wanted. */
static enum lw_reporter_end run(const char *what, bool must_write_files, uint32_t wait_ms, struct lw_report_done *done)
{
	static char path[LW_SPAWN_PATH_BYTES] LW_ROOM; /* always the same text; not on a small stack */
	char shmid[32] = "-", done_fd[32];
	const char *argv[] = { path, "--report", shmid, what, done_fd, NULL };
	bool is_shared = lw_box_is_shared() && (uint32_t)lw_syscall(SYS_geteuid, 0) == lw_own.uid;
	bool is_private = !is_shared && !lw_boxfile_path()[0];
	enum lw_reporter_end outcome = LW_REPORTER_REFUSED;
	struct pipes pipes;
	bool does_end;
	uint64_t before;
	int pid;

	if (!lw_spawn_find("leakwatch-snapshot", path, sizeof(path)))
		return LW_REPORTER_NONE;
	if (is_shared)
		(void)put_number(put_text(shmid, "--shmid="), (uint64_t)lw_own.shmid);
	else if (!is_private)
		argv[2] = lw_boxfile_path();
	open_pipes(&pipes, is_private);
	refusal = is_private && pipes.records[0] < 0 ? -EMFILE : 0;
	if (pipes.done[1] >= 0)
		(void)put_number(put_text(done_fd, "--done-fd="), (uint64_t)pipes.done[1]);
	else
		argv[4] = NULL;
	if (!is_private || pipes.records[0] >= 0) {
		pid = begin(argv, &pipes, must_write_files, &before);
		refusal = pid < 0 ? pid : 0;
		close_fd(&pipes.done[1]);
		if (pid > 0)
			send_records(&pipes);
		if (pid > 0)
			outcome = wait_for(pid, pipes.done[0], is_shared && wait_ms == REPORTER_WAIT_MS, wait_ms, done);
		does_end = outcome != LW_REPORTER_LATE;
		if (!does_end && wait_ms == REPORTER_WAIT_MS) /* else it may well finish without us */
			does_end = lw_syscall(SYS_kill, pid, SIGKILL) == 0; /* it lives: its end of the pipe is open */
		if (is_to_be_child())
			lw_spawn_reap(pid, does_end, before);
	}
	close_fd(&pipes.done[1]);
	close_fd(&pipes.done[0]);
	close_fd(&pipes.records[0]);
	close_fd(&pipes.records[1]);
	return outcome;
}

enum lw_reporter_end lw_reporter_run(enum lw_end how, bool must_write_files, struct lw_report_done *done)
{
	return run(end_name(how), must_write_files, REPORTER_WAIT_MS, done);
}

bool lw_reporter_tell(uint32_t event, uint32_t wait_ms)
{
	struct lw_report_done done;
	enum lw_reporter_end outcome;
	char what[32];

	if (is_to_be_child()) /* the program goes on, and may see it */
		return false;
	(void)put_number(put_text(what, "--event="), event);
	outcome = run(what, false, wait_ms, &done);
	return outcome == LW_REPORTER_DONE || outcome == LW_REPORTER_LATE;
}
