/* SPDX-License-Identifier: MIT */
/*
 * Loses 3 blocks of 64 bytes, frees one, says "ready" on stdout, then ends in the way it is told.
 * usage: HOW pause, close (stdin is to come to its end), abort, segv, term, group, child (forks one
 * that pauses), silent
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

FRAME static void lose(size_t bytes)
{
	hold(malloc(bytes));
}

static void say_ready(void)
{
	if (write(1, "ready\n", 6) != 6)
		_exit(3);
}

static void wait_for_end_of_input(void)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
}

/* The child maps its parent's memory, and never allocates. */
static void leave_a_child(void)
{
	if (fork() == 0) {
		close(0);
		close(1);
		close(2);
		sleep(8);
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "pause";

	for (int i = 0; i < 3; i++)
		lose(64);
	free(hold(malloc(1000)));
	if (!strcmp(how, "child"))
		leave_a_child();
	if (strcmp(how, "silent"))
		say_ready();
	wait_for_end_of_input();
	if (!strcmp(how, "pause") || !strcmp(how, "child"))
		pause();
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		(void)raise(SIGSEGV);
	if (!strcmp(how, "term"))
		(void)kill(getpid(), SIGTERM);
	if (!strcmp(how, "group"))
		(void)syscall(SYS_exit_group, 7);
	if (!strcmp(how, "wait"))
		return wait(NULL) == -1 ? 0 : 4; /* a child that we do not know of? */
	return 0;
}
