/* SPDX-License-Identifier: MIT */
/*
 * victim-storm.c - does what a program does that minds its own processes and descriptors, for SECONDS, and
 * ends with 7 if all of it went as it would alone. usage: victim-storm SECONDS
 *
 * Children of fork and vfork, told by wait and by SIGCHLD; all descriptors closed and the lowest
 * opened again; threads; and blocks that stay. Says "ready" first, "N children" last, then closes
 * everything and goes on for a moment. A number below says what went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

static volatile sig_atomic_t nr_told; /* has SIGCHLD come since the last child? */
static int nr_children;

static void on_child(int nr)
{
	(void)nr;
	nr_told = 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

FRAME static void churn(int nr)
{
	for (int i = 0; i < nr; i++)
		free(hold(malloc(opaque((size_t)i % 700 + 1))));
	hold(malloc(opaque(48)));
}

static void expect(int good, int what)
{
	if (good)
		return;
	fprintf(stderr, "wrong: %d, errno %d\n", what, errno);
	_exit(what);
}

/* The only child there is: nobody else's, nothing of ours that we did not start. */
static void wait_for(pid_t child, int status)
{
	int got_status = 0;
	pid_t got;

	while ((got = waitpid(-1, &got_status, 0)) < 0 && errno == EINTR)
		;
	expect(got == child, 10);
	expect(WIFEXITED(got_status) && WEXITSTATUS(got_status) == status, 11);
	expect(nr_told, 12);
	nr_told = 0;
	nr_children++;
}

static void fork_once(int is_deep)
{
	pid_t child = fork();

	if (!child) {
		nr_children = 0;
		nr_told = 0;
		churn(20);
		expect(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, 13);
		if (is_deep)
			fork_once(0);
		_exit(3);
	}
	expect(child > 0, 14);
	churn(20);
	wait_for(child, 3);
}

static void vfork_once(void)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
		_exit(99);
	}
	expect(child > 0, 15);
	wait_for(child, 4);
}

static void *in_thread(void *unused)
{
	churn(200);
	return unused;
}

static void thread_once(void)
{
	pthread_t thread;

	expect(!pthread_create(&thread, NULL, in_thread, NULL), 16);
	churn(50);
	pthread_join(thread, NULL);
}

static void close_and_open(void)
{
	int first;

	expect(dup(2) >= 3 && dup(2) >= 4, 17);
	closefrom(4);
	close(3);
	churn(20);
	first = open("/dev/null", O_RDONLY);
	expect(first == 3 && fcntl(4, F_GETFD) < 0 && errno == EBADF, 18);
	close(first);
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 2);
	struct sigaction action = {.sa_handler = on_child};

	sigaction(SIGCHLD, &action, NULL);
	puts("ready");
	fflush(stdout);
	for (int i = 0; now() < end; i++) {
		errno = 0;
		churn(30);
		expect(!errno, 19);
		fork_once(i % 7 == 0);
		if (i % 10 == 0)
			vfork_once();
		if (i % 5 == 0)
			close_and_open();
		if (i % 16 == 0)
			thread_once();
	}
	expect(waitpid(-1, NULL, 0) < 0 && errno == ECHILD, 20);
	expect(!nr_told, 21);
	printf("%d children\n", nr_children);
	fflush(stdout);
	closefrom(0);
	for (end = now() + 0.3; now() < end;)
		churn(100);
	if (open("/dev/null", O_RDONLY) != 0)
		_exit(22);
	return 7;
}
