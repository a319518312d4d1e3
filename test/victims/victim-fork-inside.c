/* SPDX-License-Identifier: MIT */
/*
 * A timer's handler forks, sooner or later in the middle of malloc. Parent and children go on with the
 * call that was interrupted; the parent keeps all its blocks of 32 bytes and says how many: "kept N".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { MAX_FORKS = 300, MAX_BLOCKS = 1000000 };
static void *kept[MAX_BLOCKS];
static volatile sig_atomic_t is_child, nr_forks, nr_failed, last_failure;

static void on_timer(int number)
{
	int saved = errno;

	(void)number;
	if (!is_child && nr_forks < MAX_FORKS) {
		nr_forks++;
		if (!fork())
			is_child = 1;
	}
	errno = saved;
}

static void note(int status)
{
	if (!status)
		return;
	nr_failed++;
	last_failure = status;
}

FRAME static void *keep(void)
{
	return hold(malloc(32));
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 700 }, { 0, 700 } }, never = { { 0, 0 }, { 0, 0 } };
	int nr = 0, status;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (nr_forks < MAX_FORKS && nr < MAX_BLOCKS) {
		kept[nr++] = keep();
		if (is_child) {
			free(kept[nr - 1]);
			_exit(0);
		}
		while (waitpid(-1, &status, WNOHANG) > 0)
			note(status);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	if (is_child)
		_exit(0);
	while (wait(&status) > 0)
		note(status);
	printf("kept %d, failed %d", nr, (int)nr_failed);
	printf(nr_failed ? ", the last with status %#x\n" : "\n", (unsigned)last_failure);
	fflush(stdout);
	_exit(0);
}
