/* SPDX-License-Identifier: MIT */
/*
 * A parent with 6 lost blocks forks a child, which frees 2 of the parent's others, loses 3 of its own
 * and forks a grandchild that loses 1. Each must be reported for its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

FRAME static void parent_loses(void)
{
	hold(malloc(100));
}

FRAME static void *parent_owns(void)
{
	return hold(malloc(50));
}

FRAME static void child_loses(void)
{
	hold(malloc(30));
}

FRAME static void grandchild_loses(void)
{
	hold(malloc(10));
}

static int wait_for(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	void *shared[2];
	pid_t pid;
	int status;

	for (int i = 0; i < 6; i++)
		parent_loses();
	for (int i = 0; i < 2; i++)
		shared[i] = parent_owns();
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 2; i++)
			free(shared[i]);
		for (int i = 0; i < 3; i++)
			child_loses();
		pid = fork();
		if (!pid) {
			grandchild_loses();
			exit(3);
		}
		exit(wait_for(pid) + 10);
	}
	status = wait_for(pid);
	for (int i = 0; i < 2; i++)
		free(shared[i]);
	printf("child %d\n", status);
	return 0;
}
