/* SPDX-License-Identifier: MIT */
/*
 * main.c - leakwatch-cleaner: waits for deaths, writes the reports of those who could not, removes
 * what they left. Started by a watched process that finds no cleaner, as an orphan; one per user
 * and place.
 *
 * The protocol has no messages. A region is its own registration: found by walking the kernel's
 * table of segments. That takes microseconds, cannot overflow, and cannot be lost by a cleaner that
 * is killed: a process that dies before it was seen has left its region all the same. What remains
 * to be settled is that some cleaner looks, at the start and at the end.
 *
 * A process makes its region first, then looks at the door (preload/share/door.h): open - it
 * knocks, which only hastens the next scan; else - it starts a cleaner. A cleaner takes the door,
 * which opens it in the same atomic step; when it has had nothing to do for a while it closes the
 * door, and either removes it or opens it again. The rule: after each opening and after each
 * closing it scans. So, for a region R:
 *  - R's process saw the door open. Whoever had it scans after its next closing, so after R was
 *    made, and finds R; or is killed, and R is an orphan until the next cleaner, see below.
 *  - R's process did not see it open, and started cleaner C. If C gets the door, it scans. If C
 * finds the door open, that opening came after R was made, and the scan after it finds R: C ends.
 * While the door is taken but closed, C waits: it is removed (C makes a new one) or opened again
 * within microseconds. So fifty processes that start at once leave one cleaner: the others find the
 * door open.
 *
 * kill -9: the kernel undoes both semaphores, the door is not open, the next watched process starts
 * a cleaner, whose first scan finds every orphan. Two cleaners (of two places, or after somebody
 * removed the door) do each other no harm: a report is claimed by a compare-and-swap in the region.
 *
 * A cleaner whose hard limits are too low, inherited from a process that is as poor, has a door of its
 * own and sees only to regions of poor processes, under the same rule. While another's door is taken
 * it leaves the dead to that one, which by the rule finds them, or is killed and its door free; and it
 * does not go before they are gone. Its process looks at that door only when the other is not open.
 *
 * Signals are blocked, since a service manager ends a unit by signalling all of it, and the others'
 * deaths are what we are here for: we end by ourselves, soon after the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cleaner/lock.h"
#include "cleaner/reporter.h"
#include "cleaner/targets.h"
#include "preload/share/limits.h"

#define MS UINT64_C(1000000)

/* Scans take at most one part in so many of the time: when idle, and when somebody knocks. */
enum { IDLE_SHARE = 50, KNOCK_SHARE = 5 };

/* Without work, so that a script of short processes shares one cleaner. */
static const uint64_t linger_ns = 1500 * MS;
/* Between scans, if nobody knocks and nobody ends. */
static const uint64_t least_pause_ns = 50 * MS;
static const uint64_t most_pause_ns = 500 * MS;
static const uint64_t slot_cost_ns = 1000; /* of a scan; measured: 300-600 */
static const uint64_t cheap_ns = MS / 4;

static const char usage[] =
	"usage: leakwatch-cleaner [OPTIONS]\n"
	"\n"
	"Waits for the ends of the processes that this user runs under LeakWatch. Of one\n"
	"that was killed it writes the report; then it removes what the process left in\n"
	"shared memory. Watched processes start it themselves. It ends when it is no\n"
	"longer needed, and at once if another one is at work.\n"
	"\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n";

static void parse_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		if (opt == '?')
			exit(2); /* getopt_long has said what is wrong */
		fputs(opt == 'h' ? usage : "leakwatch-cleaner " LW_VERSION "\n", stdout);
		exit(fflush(stdout) ? 1 : 0);
	}
	if (optind < argc) {
		(void)fprintf(
			stderr, "leakwatch-cleaner: '%s' is too much; try --help\n", argv[optind]);
		exit(2);
	}
}

/* ---- becoming a process that keeps nothing of anybody ---- */

/* Something harmless as 0, 1 and 2: a pidfd must not come to be somebody's stderr. */
static void settle_descriptors(void)
{
	int fd;

	(void)syscall(SYS_close_range, 0, ~0u, 0);
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			fd = (int)syscall(SYS_memfd_create, "null", 0);
	} while (fd >= 0 && fd < 2);
}

/* A target may be the first to be killed when memory is short; its cleaner must not be. */
static void be_no_victim(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && atoi(text) > 0 && lseek(fd, 0, SEEK_SET) == 0 &&
		write(fd, "0", 1) < 0)
		(void)errno; /* not allowed: then not */
	close(fd);
}

static void wake(int signal)
{
	(void)signal; /* it ends a ppoll */
}

static void settle_signals(void)
{
	struct sigaction action = {.sa_handler = wake};
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigaction(SIGCHLD, &action, NULL);
	(void)sigaction(SIGURG, &action, NULL);
}

static void settle(void)
{
	settle_descriptors();
	settle_signals();
	lw_limits_raise();
	if (lw_limits_poor())
		lock_be_poor();
	be_no_victim();
	(void)setsid();		       /* fails if we are a leader already */
	(void)umask(umask(077) | 022); /* reports are not for others to write */
	if (chdir("/") < 0)
		(void)errno; /* it keeps a file system busy, no more */
}

/* ---- the work ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Until one of the set or a reporter ends, or somebody knocks, or until the time is over. */
static void rest(struct pollfd *set, size_t nr, uint64_t pause_ns)
{
	struct timespec pause = timespec_of(pause_ns);
	sigset_t mask;

	(void)sigfillset(&mask);
	(void)sigdelset(&mask, SIGCHLD); /* let in only here, so that none is missed */
	(void)sigdelset(&mask, SIGURG);
	(void)ppoll(set, nr, &pause, &mask);
}

/*
 * Reporters that end meanwhile are followed by the next ones: with thousands of segments a scan and the
 * gap after it are long, and few reporters run at a time.
 */
static void wait_until(uint64_t until_ns)
{
	uint64_t now = now_ns();

	while (now < until_ns) {
		rest(NULL, 0, until_ns - now);
		now = now_ns();
		(void)reporter_reap(now);
		targets_bury_dead(now);
	}
}

/* One scan, not too soon after a long one; returns how long to rest after it. */
static uint64_t scan(uint64_t last_pause_ns)
{
	static uint64_t began_ns, cost_ns;
	uint64_t next_ns = began_ns + cost_ns * KNOCK_SHARE, pause_ns = 2 * last_pause_ns;

	began_ns = now_ns();
	if (began_ns < next_ns && cost_ns > cheap_ns) {
		wait_until(next_ns);
		began_ns = now_ns();
	}
	cost_ns = targets_scan(began_ns) * slot_cost_ns;
	if (targets_is_restless() || pause_ns < least_pause_ns)
		pause_ns = least_pause_ns;
	if (pause_ns > most_pause_ns)
		pause_ns = most_pause_ns;
	return pause_ns < cost_ns * IDLE_SHARE ? cost_ns * IDLE_SHARE : pause_ns;
}

static bool is_busy(void)
{
	return reporter_reap(now_ns()) || targets_is_busy();
}

/* True: nobody needs us, and the door is gone. */
static bool leave(void)
{
	lock_close();
	(void)targets_scan(now_ns());
	if (!is_busy()) {
		lock_sweep();
		lock_remove();
		return true;
	}
	lock_open();
	(void)targets_scan(now_ns());
	return false;
}

static void finish_reports(void)
{
	while (reporter_reap(now_ns()))
		rest(NULL, 0, least_pause_ns);
}

static void serve(void)
{
	uint64_t needed_ns = now_ns(), pause_ns = least_pause_ns;
	struct pollfd *set;
	size_t nr;

	for (;;) {
		/* removed behind our back: another may have a new one */
		if (!lock_is_held() && lock_take() != LOCK_TAKEN)
			break;
		pause_ns = scan(pause_ns);
		if (is_busy())
			needed_ns = now_ns();
		else if (now_ns() - needed_ns > linger_ns && leave())
			return;
		nr = targets_poll_set(&set);
		rest(set, nr, pause_ns);
	}
	finish_reports();
}

int main(int argc, char **argv)
{
	parse_command(argc, argv);
	reporter_init(argv[0]);
	settle();
	switch (lock_take()) {
	case LOCK_IS_SERVED:
		return 0;
	case LOCK_FAILED: /* nobody could find us: let the regions go with their processes */
		(void)targets_scan(now_ns());
		targets_give_up();
		finish_reports();
		return 1;
	case LOCK_TAKEN:
		break;
	}
	serve();
	return 0;
}
