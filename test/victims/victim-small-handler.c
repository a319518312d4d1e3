/* SPDX-License-Identifier: MIT */
/*
 * A signal handler on an alternate stack of 8 KiB between two pages that cannot be touched does what its
 * argument says: malloc, _exit, exit, quick_exit, fork (the child allocates). Status 3 when all went well.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { STACK_BYTES = 8192, GUARD_BYTES = 4096 };
static const char *what;
static int child_status;

FRAME static void lose_in_handler(void)
{
	hold(malloc(77));
}

static void fork_and_wait(void)
{
	pid_t child = fork();

	if (!child) {
		lose_in_handler();
		_exit(0);
	}
	waitpid(child, &child_status, 0);
}

static void on_signal(int number)
{
	(void)number;
	lose_in_handler();
	if (!strcmp(what, "_exit"))
		_exit(3);
	if (!strcmp(what, "exit"))
		exit(3);
	if (!strcmp(what, "quick_exit"))
		quick_exit(3);
	if (!strcmp(what, "fork"))
		fork_and_wait();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char *place = mmap(NULL, STACK_BYTES + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t small = { .ss_sp = place + GUARD_BYTES, .ss_size = STACK_BYTES };

	what = argc > 1 ? argv[1] : "malloc";
	mprotect(place + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE);
	if (sigaltstack(&small, NULL) || sigaction(SIGUSR1, &action, NULL))
		return 2;
	raise(SIGUSR1);
	return child_status ? 4 : 3;
}
