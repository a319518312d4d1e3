/* SPDX-License-Identifier: MIT */
/*
 * Loses a block of 40 bytes, then dies in the way it is told, some with children that die too.
 * usage: victim-die HOW; the ways are in the table at the end
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

static char **own_argv;

FRAME static void lose(void)
{
	hold(malloc(40));
}

static void end(void)
{
	exit(3);
}

static void end_at_once(void)
{
	_exit(3);
}

static void end_quickly(void)
{
	quick_exit(3);
}

static void end_raw(void)
{
	(void)syscall(SYS_exit_group, 3);
}

static void be_killed(void)
{
	(void)kill(getpid(), SIGKILL);
}

static void be_terminated(void)
{
	(void)kill(getpid(), SIGTERM);
}

static void crash(void)
{
	*(volatile int *)16 = 1;
}

static void exec_again(const char *how)
{
	own_argv[1] = (char *)how;
	(void)execv("/proc/self/exe", own_argv);
}

static void exec_and_end(void)
{
	exec_again("exec2");
}

static void exec_and_exec(void)
{
	exec_again("kill");
}

static void exec_other(void)
{
	(void)execl("/bin/sh", "sh", "-c", "kill -9 $$", (char *)NULL);
}

static void wait_for_all(void)
{
	while (wait(NULL) > 0)
		;
}

/* Children that lose a block, or none, and end in this way or that. */
static void fork_some(void)
{
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			if (i % 2)
				lose();
			if (i < 2)
				be_killed();
			_exit(0);
		}
	}
	wait_for_all();
	exit(3);
}

/* A child that goes on for a moment when its parent is gone. */
static void leave_child(void)
{
	if (fork() == 0) {
		lose();
		(void)usleep(20000);
		be_killed();
	}
	be_killed();
}

static void vfork_some(void)
{
	static const char *const program[] = { "/bin/true", NULL };

	if (vfork() == 0)
		_exit(1);
	if (vfork() == 0) {
		(void)execv(program[0], (char *const *)program);
		_exit(1);
	}
	wait_for_all();
	exit(3);
}

static void *allocate_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		free(hold(malloc(64)));
	return NULL;
}

/* Killed from outside at a random moment of two allocating threads. */
static void be_killed_busy(void)
{
	pthread_t thread;

	if (fork() == 0) {
		(void)usleep((useconds_t)getpid() % 997 * 4);
		(void)syscall(SYS_kill, getppid(), SIGKILL);
		(void)syscall(SYS_exit_group, 0);
	}
	if (pthread_create(&thread, NULL, allocate_for_ever, NULL) == 0)
		(void)allocate_for_ever(NULL);
}

static void *end_process(void *unused)
{
	(void)unused;
	exit(3);
}

static void leave_main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, end_process, NULL) == 0)
		pthread_exit(NULL);
}

/* Until there is no more, or a bounded amount, should nobody stop it. */
static void eat(void)
{
	enum { PIECE = 1 << 20, MOST = 512 };

	for (int i = 0; i < MOST; i++) {
		char *piece = hold(malloc(PIECE));

		if (piece)
			memset(piece, 1, PIECE);
	}
}

static FRAME void climb(unsigned path, unsigned depth);

static FRAME void step_left(unsigned path, unsigned depth)
{
	climb(path, depth);
	(void)hold(NULL);
}

static FRAME void step_right(unsigned path, unsigned depth)
{
	climb(path, depth);
	(void)hold(NULL);
}

static void climb(unsigned path, unsigned depth)
{
	if (!depth)
		lose();
	else if (path & 1)
		step_left(path >> 1, depth - 1);
	else
		step_right(path >> 1, depth - 1);
	(void)hold(NULL);
}

/* A thousand sites, each with a stack of its own; then it waits to be killed. */
static void be_many(void)
{
	for (unsigned path = 0; path < 1000; path++)
		climb(path, 10);
	if (write(1, "ready\n", 6) == 6)
		(void)pause();
}

static const struct {
	const char *how;
	void (*die)(void);
} ways[] = {
	{ "exit", end }, { "_exit", end_at_once }, { "quick", end_quickly }, { "group", end_raw }, { "kill", be_killed },
	{ "term", be_terminated }, { "segv", crash }, { "abort", abort }, { "exec", exec_and_end },
	{ "exec2", exec_and_exec }, { "other", exec_other }, { "fork", fork_some }, { "orphan", leave_child },
	{ "vfork", vfork_some }, { "busy", be_killed_busy }, { "main", leave_main },
	{ "eat", eat }, { "many", be_many },
};

int main(int argc, char **argv)
{
	own_argv = argv;
	lose();
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(argv[1], ways[i].how))
			ways[i].die();
	}
	return 99;
}
