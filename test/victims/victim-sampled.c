/* SPDX-License-Identifier: MIT */
/*
 * victim-sampled.c - millions of bytes in small blocks, of which some functions lose all and others none; in two
 * threads and, with an argument, in a forked child too.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { ROUNDS = 40000, KEPT = 512 };

FRAME static void lose_small(void)
{
	hold(malloc(48));
}

FRAME static void lose_large(void)
{
	hold(malloc(3000));
}

FRAME static void give_back(unsigned i)
{
	static __thread void *kept[KEPT];

	kept[i % KEPT] = hold(realloc(kept[i % KEPT], i % 3 ? 100 : 4000));
	if (i % 7 == 0) {
		free(kept[i % KEPT]);
		kept[i % KEPT] = NULL;
	}
	for (unsigned k = 0; i == ROUNDS - 1 && k < KEPT; k++) {
		free(kept[k]);
		kept[k] = NULL;
	}
}

static void *work(void *unused)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		lose_small();
		if (i % 20 == 0)
			lose_large();
		give_back(i);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	work(NULL);
	pthread_join(thread, NULL);
	if (argc > 1) {
		pid_t pid = fork();

		if (!pid) {
			work(NULL);
			exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}
