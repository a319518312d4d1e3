/* SPDX-License-Identifier: MIT */
/*
 * knock.c - see knock.h.
 *
 * Signals are blocked in the thread while it is elsewhere. It is done by a child of this program, which finishes whatever
 * becomes of this program, and whose end lets go of all that it held: one that could not be stopped in time would else
 * stop later, for good. A thread that waits in a system call is taken if there is one: it is in no sequence that must not be interrupted
 * (rseq). Of the others only one that is not in such a sequence. Threads of a process that filters its system calls
 * are left alone.
 */
#include "snapshot/source/knock.h"

#include <dirent.h>
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "snapshot/source/place.h"
#include "snapshot/source/regs_x86_64.h"

enum {
	MAX_THREADS = 64,   /* that are tried */
	VECTOR_BYTES = 16384,
	STOP_MS = 100,	    /* one that is in an uninterruptible wait does not stop */
	LOOK_MS = 1000,
	EVENT_STOP = 128,
};

struct thread {
	pid_t tid;
	struct user_regs_struct regs;
	unsigned char vectors[VECTOR_BYTES];
	size_t nr_vector_bytes;
	uint64_t mask;
	int signal; /* that was about to be delivered: it gets it when it is let go */
};

static bool move_set(int request, pid_t tid, long set, void *at, size_t *bytes)
{
	struct iovec room = {at, *bytes};
	bool is_done = ptrace(request, tid, set, &room) == 0;

	*bytes = room.iov_len;
	return is_done;
}

/* Its next stop; 0: none in time, or it has ended. */
static int wait_for_stop(pid_t tid, int most_ms)
{
	const struct timespec pause = {.tv_nsec = 50000};
	int status = 0;
	pid_t got;

	for (int i = 0; i < most_ms * 20; i++) {
		got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got)
			return got == tid && WIFSTOPPED(status) ? status : 0;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* Seized, and in the stop that was asked for; signals on their way are taken first. */
static bool stop(pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return false;
	for (int i = 0; i < 8; i++) {
		int status = wait_for_stop(tid, STOP_MS);

		if (!status)
			return false;
		if (status >> 16 == EVENT_STOP)
			return WSTOPSIG(status) == SIGTRAP; /* else the whole process is stopped: not ours to start */
		if (ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status)))
			return false;
	}
	return false;
}

/* A registered critical section that it stands in would be left half done. */
static bool is_in_sequence(pid_t tid)
{
	struct __ptrace_rseq_configuration rseq = {0};
	long word;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(rseq), &rseq) < 0)
		return true; /* not to be told */
	if (!rseq.rseq_abi_pointer)
		return false;
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, tid, rseq.rseq_abi_pointer + 8 /* rseq_cs */, 0);
	return errno || word;
}

static bool save(struct thread *thread)
{
	size_t bytes = sizeof(thread->regs);

	thread->nr_vector_bytes = sizeof(thread->vectors);
	return move_set(PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &thread->regs, &bytes) &&
		bytes == sizeof(thread->regs) &&
		move_set(PTRACE_GETREGSET, thread->tid, NT_X86_XSTATE, thread->vectors,
			&thread->nr_vector_bytes) &&
		thread->nr_vector_bytes < sizeof(thread->vectors) &&
		ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof(thread->mask), &thread->mask) == 0;
}

static bool put_back(struct thread *thread)
{
	size_t bytes = sizeof(thread->regs);

	if (!thread->signal)
		regs_mend(&thread->regs);
	return move_set(PTRACE_SETREGSET, thread->tid, NT_X86_XSTATE, thread->vectors,
		       &thread->nr_vector_bytes) &&
		move_set(PTRACE_SETREGSET, thread->tid, NT_PRSTATUS, &thread->regs, &bytes) &&
		ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(thread->mask), &thread->mask) == 0;
}

/* Until it has looked. What cannot be blocked (SIGSTOP) is kept for later. */
static bool let_look(struct thread *thread, uint64_t pc)
{
	struct user_regs_struct sent = regs_sent_to(&thread->regs, pc);
	uint64_t all = ~UINT64_C(0);
	size_t bytes = sizeof(sent);

	if (ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(all), &all) ||
		!move_set(PTRACE_SETREGSET, thread->tid, NT_PRSTATUS, &sent, &bytes))
		return false;
	for (int i = 0; i < 8; i++) {
		int status;

		if (ptrace(PTRACE_CONT, thread->tid, 0, 0))
			return false;
		status = wait_for_stop(thread->tid, LOOK_MS);
		if (!status)
			return false;
		if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
			return true;
		if (WSTOPSIG(status) == SIGSEGV)
			return false;
		if (status >> 16 == 0)
			thread->signal = WSTOPSIG(status);
	}
	return false;
}

static bool visit(pid_t tid, uint64_t pc, bool is_running_good)
{
	struct thread thread = {.tid = tid};
	bool is_done = false;

	if (!stop(tid)) {
		(void)ptrace(PTRACE_DETACH, tid, 0, 0);
		return false;
	}
	if (save(&thread) && (regs_is_in_call(&thread.regs) || (is_running_good && !is_in_sequence(tid)))) {
		is_done = let_look(&thread, pc);
		(void)put_back(&thread);
	} else if (regs_is_in_call(&thread.regs)) {
		size_t bytes = sizeof(thread.regs);

		regs_mend(&thread.regs);
		(void)move_set(PTRACE_SETREGSET, tid, NT_PRSTATUS, &thread.regs, &bytes);
	}
	(void)ptrace(PTRACE_DETACH, tid, 0, thread.signal);
	return is_done;
}

static size_t list_threads(pid_t pid, pid_t tids[MAX_THREADS])
{
	const struct dirent *entry;
	char path[48];
	size_t nr = 0;
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && nr < MAX_THREADS && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.')
			tids[nr++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (tasks)
		(void)closedir(tasks);
	return nr;
}

static bool visit_any(pid_t pid, uint64_t pc)
{
	pid_t tids[MAX_THREADS];
	size_t nr = list_threads(pid, tids);

	for (int is_running_good = 0; is_running_good < 2; is_running_good++) {
		for (size_t i = 0; i < nr; i++) {
			if (visit(tids[i], pc, is_running_good))
				return true;
		}
	}
	return false;
}

static void block_signals(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
}

/* What of a process's state keeps others from stopping it; NULL: nothing that is known. */
static const char *what_holds(pid_t pid)
{
	static char text[64];
	char path[32], line[128], state = '?';
	const char *why = NULL;
	FILE *file;
	int tracer = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "State: %c", &state);
		(void)sscanf(line, "TracerPid: %d", &tracer);
	}
	if (file)
		(void)fclose(file);
	if (tracer) {
		(void)snprintf(text, sizeof(text), "it is traced by process %d", tracer);
		why = text;
	} else if (state == 'T') {
		why = "it is stopped";
	}
	return why;
}

const char *knock_at(pid_t pid, struct lw_region_header *region)
{
	uint64_t pc = lw_load(&region->scan.knock_pc);
	const char *why = place_forbids_helper(pid);
	int status = 0;
	pid_t child;

	if (why)
		return why;
	if (!pc)
		return "it has not come up yet";
	child = fork();
	if (child == 0) {
		(void)setsid();
		block_signals();
		(void)__atomic_fetch_add(&region->scan.nr_knocking, 1, __ATOMIC_ACQ_REL);
		status = visit_any(pid, pc) ? 0 : 1;
		(void)__atomic_fetch_sub(&region->scan.nr_knocking, 1, __ATOMIC_ACQ_REL);
		_exit(status);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	why = what_holds(pid);
	return why ? why : "none of its threads can be stopped";
}
