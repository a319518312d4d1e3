/* SPDX-License-Identifier: MIT */
/*
 * Allocates nothing of its own until it has done what it is told.
 * usage: HOW idle (says "ready", waits for a signal), fork (a child loses a block of 50 bytes, itself
 * nothing), vfork (a child that shares its memory allocates; then it loses three blocks of 50 bytes)
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

FRAME static void lose(void)
{
	hold(malloc(50));
}

FRAME static void borrow(void)
{
	free(hold(malloc(70)));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pid_t child = 0;

	if (!strcmp(how, "idle")) {
		if (write(1, "ready\n", 6) == 6)
			(void)pause();
		_exit(4);
	}
	if (!strcmp(how, "fork")) {
		child = fork();
		if (!child)
			lose();
	} else {
		child = vfork();
		if (!child) {
			borrow();
			_exit(3);
		}
		for (int i = 0; i < 3; i++)
			lose();
	}
	if (child)
		(void)waitpid(child, NULL, 0);
	return 3;
}
