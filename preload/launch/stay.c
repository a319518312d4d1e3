/* SPDX-License-Identifier: MIT */
/*
 * stay.c - waiting for the program, and its report when it was killed; see stay.h.
 *
 * Signals are taken with sigwaitinfo(), so nothing is interrupted and none is lost. One that a
 * process sent is passed on; one from the terminal is not, since the program, which is in the same
 * process group, got it too. The report of a killed program is written by leakwatch-snapshot from
 * the region, as the cleaner would; who moves the region's state on from RUNNING writes it.
 */
#include "preload/launch/stay.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "preload/launch/inspect.h"
#include "preload/share/queue.h"
#include "preload/share/region.h"

enum { STATUS_OWN_FAILURE = 125, SIGNAL_STATUS = 128 };

extern char **environ;

/* leakwatch-snapshot lies beside the launcher, or in the build tree's folder of it. */
static bool find_snapshot(char path[PATH_MAX])
{
	static const char *const places[] = { "leakwatch-snapshot", "../snapshot/leakwatch-snapshot" };
	char *name;

	if (!lw_inspect_own_path(path))
		return false;
	name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if ((size_t)(name - path) + strlen(places[i]) >= PATH_MAX)
			return false;
		strcpy(name, places[i]);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Ours to report: true for the one who moves it on from RUNNING. */
static bool claim(int shmid)
{
	struct lw_region_header *region = shmat(shmid, NULL, 0);
	uint32_t running = LW_STATE_RUNNING;
	bool is_ours;

	if (region == (void *)-1)
		return false;
	is_ours = __atomic_compare_exchange_n(&region->state, &running, LW_STATE_ENDING, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	(void)shmdt(region);
	return is_ours;
}

/* False: it did not get to its end, which it notes in the region. */
static bool run_reporter(int shmid, int signal, const struct lw_region_header *region)
{
	char path[PATH_MAX], shmid_text[32], signal_text[32];
	char *argv[] = { path, (char[]){ "--report" }, shmid_text, (char[]){ "--state=killed" },
		signal_text, NULL };
	pid_t pid;
	int status;

	if (!find_snapshot(path)) {
		fputs("leakwatch: cannot report: leakwatch-snapshot is missing\n", stderr);
		return true;
	}
	snprintf(shmid_text, sizeof(shmid_text), "--shmid=%d", shmid);
	snprintf(signal_text, sizeof(signal_text), "--signal=%d", signal);
	(void)unsetenv("LD_PRELOAD");
	(void)unsetenv("LEAKWATCH_OPTIONS");
	if (posix_spawn(&pid, path, NULL, NULL, argv, environ) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	return lw_load_acquire(&region->state) == LW_STATE_REPORTED;
}

static void report_killed(pid_t pid, int signal)
{
	const struct lw_region_header *region;
	const char *why;
	uint64_t bytes;
	int shmid;

	if (lw_region_attach(pid, 0, &region, &bytes, &shmid, &why))
		return; /* it had reported itself, or was not watched */
	/* a crash, or a kill where memory is short, may have been bad luck: once more */
	if (claim(shmid) && !run_reporter(shmid, signal, region) && !run_reporter(shmid, signal, region))
		fputs("leakwatch: cannot report: leakwatch-snapshot did not get to its end\n", stderr);
	lw_queue_remove(lw_load(&region->msqid));
	lw_region_detach(region);
	(void)shmctl(shmid, IPC_RMID, NULL);
}

/* Ends as the program did: the same status, or by the same signal, without a second core file. */
static _Noreturn void end_like(int status)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t set;

	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, WTERMSIG(status));
	(void)raise(WTERMSIG(status));
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(SIGNAL_STATUS + WTERMSIG(status)); /* process 1 is not killed by its own signals */
}

/* All children that ended; the program's own end ends us, its stop stops us. */
static void reap(pid_t program)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != program)
			continue;
		if (WIFSTOPPED(status)) {
			(void)raise(SIGSTOP);
			(void)kill(program, SIGCONT);
			continue;
		}
		if (WIFSIGNALED(status))
			report_killed(program, WTERMSIG(status));
		else
			report_killed(program, 0); /* ended past us by a raw system call */
		end_like(status);
	}
}

void lw_stay(void)
{
	sigset_t all, before;
	siginfo_t info;
	pid_t program;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	program = fork();
	if (program < 0) {
		fprintf(stderr, "leakwatch: cannot start the program: %s\n", strerror(errno));
		exit(STATUS_OWN_FAILURE);
	}
	if (program == 0) {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		return;
	}
	for (;;) {
		if (sigwaitinfo(&all, &info) < 0)
			continue;
		if (info.si_signo == SIGCHLD)
			reap(program);
		else if (info.si_code <= 0)
			(void)kill(program, info.si_signo);
	}
}
