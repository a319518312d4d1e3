/* SPDX-License-Identifier: MIT */
/*
 * Loses 4 blocks of 25 bytes and ends with status 5 in the way its argument says: return, exit,
 * _exit, _Exit, quick_exit, thread (exit called in a thread), main (main leaves first, status 0), last (so
 * does the last thread, by thrd_exit).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "victim.h"

static pthread_t main_thread;

FRAME static void lose(void)
{
	for (int i = 0; i < 4; i++)
		hold(malloc(25));
}

static void *end_in_thread(void *unused)
{
	exit(5);
	return unused;
}

static void *outlive_main(void *unused)
{
	pthread_join(main_thread, NULL);
	lose();
	return unused;
}

static int leave_last(void *unused)
{
	(void)outlive_main(unused);
	thrd_exit(5);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	pthread_t thread;

	if (!strcmp(how, "main")) {
		main_thread = pthread_self();
		if (pthread_create(&thread, NULL, outlive_main, NULL))
			return 2;
		pthread_exit(NULL);
	}
	if (!strcmp(how, "last")) {
		thrd_t last;

		main_thread = pthread_self();
		if (thrd_create(&last, leave_last, NULL) != thrd_success)
			return 2;
		thrd_exit(6);
	}
	lose();
	fflush(stdout);
	if (!strcmp(how, "exit"))
		exit(5);
	if (!strcmp(how, "_exit"))
		_exit(5);
	if (!strcmp(how, "_Exit"))
		_Exit(5);
	if (!strcmp(how, "quick_exit"))
		quick_exit(5);
	if (!strcmp(how, "thread")) {
		if (pthread_create(&thread, NULL, end_in_thread, NULL))
			return 2;
		pthread_join(thread, NULL);
	}
	return 5;
}
