/* SPDX-License-Identifier: MIT */
/*
 * A timer's signal lands in malloc or free sooner or later; its handler allocates (as it must not,
 * but programs do), then ends the process by _exit with status 9. Nothing may wait for a lock.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "victim.h"

static volatile sig_atomic_t nr_left = 40;

static void on_timer(int number)
{
	(void)number;
	if (--nr_left == 0)
		_exit(9);
}

FRAME static void churn(void)
{
	for (size_t n = 1;; n = n % 3000 + 7)
		free(hold(realloc(hold(malloc(n)), n * 2)));
}

static void *body(void *unused)
{
	churn();
	return unused;
}

int main(void)
{
	struct itimerval soon = { .it_interval = { 0, 1500 }, .it_value = { 0, 1500 } };
	pthread_t thread;

	signal(SIGALRM, on_timer);
	if (pthread_create(&thread, NULL, body, NULL))
		return 2;
	setitimer(ITIMER_REAL, &soon, NULL);
	churn();
	return 3;
}
