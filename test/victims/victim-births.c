/* SPDX-License-Identifier: MIT */
/*
 * Ways to be born, other than fork by the only thread. The first process loses 2 blocks of 100 bytes in
 * first_loses(), each of its children one of 30 in child_loses(). usage: victim-births HOW
 *   clone	  a child by the raw system call
 *   spawn	  three children by posix_spawn, one by vfork and exec
 *   daemon	  forks twice, closes all descriptors there can be, goes elsewhere
 *   threads	  two thousand threads, fifty at a time, each of which loses a block of 24 in thread_loses()
 *   forks	  ten children forked by one thread while three others allocate; each of them allocates too
 *   child	  is such a child
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { NR_FORKS = 10, NR_THREADS = 2000, NR_AT_A_TIME = 50, NR_CHURNING = 3, MOST_FDS = 1024 };

static const char *self;
static int stop;

FRAME static void first_loses(void)
{
	hold(malloc(100));
}

FRAME static void child_loses(void)
{
	hold(malloc(30));
}

FRAME static void thread_loses(void)
{
	hold(malloc(24));
}

/* How many children ended with 3. */
static int reap(void)
{
	int nr = 0, status;

	while (wait(&status) > 0)
		nr += WIFEXITED(status) && WEXITSTATUS(status) == 3;
	return nr;
}

static void be_child(void)
{
	child_loses();
	exit(3);
}

static void by_clone(void)
{
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
		be_child();
}

static void by_spawn(void)
{
	extern char **environ;
	char *argv[] = { (char *)self, (char *)"child", NULL };
	pid_t pid;

	for (int i = 0; i < 3; i++)
		(void)posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (vfork() == 0) {
		(void)execv(self, argv);
		_exit(9);
	}
}

static void be_daemon(void)
{
	if (fork() > 0)
		return; /* the first one goes, as it does in all daemons */
	(void)setsid();
	if (fork() > 0)
		_exit(3);
	for (int fd = 0; fd < MOST_FDS; fd++)
		(void)close(fd);
	if (chdir("/"))
		_exit(9);
	be_child();
}

static void *lose_one(void *unused)
{
	thread_loses();
	return unused;
}

static void thousands(void)
{
	pthread_t threads[NR_AT_A_TIME];

	for (int i = 0; i < NR_THREADS / NR_AT_A_TIME; i++) {
		for (int j = 0; j < NR_AT_A_TIME; j++) {
			if (pthread_create(&threads[j], NULL, lose_one, NULL))
				_exit(9);
		}
		for (int j = 0; j < NR_AT_A_TIME; j++)
			pthread_join(threads[j], NULL);
	}
}

static void *churn(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		void *block = hold(malloc(40)), *copy = hold(calloc(1, 4000));

		free(block);
		free(copy);
	}
	return unused;
}

static void *fork_some(void *unused)
{
	for (int i = 0; i < NR_FORKS; i++) {
		if (fork() == 0) {
			for (int j = 0; j < 1000; j++)
				free(hold(malloc((size_t)j)));
			be_child();
		}
	}
	return unused;
}

static void forks(void)
{
	pthread_t threads[NR_CHURNING + 1];

	for (int i = 0; i <= NR_CHURNING; i++) {
		if (pthread_create(&threads[i], NULL, i ? churn : fork_some, NULL))
			_exit(9);
	}
	pthread_join(threads[0], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 1; i <= NR_CHURNING; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *how;
		void (*go)(void);
	} ways[] = { { "clone", by_clone }, { "spawn", by_spawn }, { "daemon", be_daemon }, { "threads", thousands },
		{ "forks", forks }, { "child", be_child } };

	self = argv[0];
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].how))
			continue;
		if (strcmp(argv[1], "child")) {
			first_loses();
			first_loses();
		}
		ways[i].go();
		printf("children %d\n", reap());
		return 5;
	}
	return 2;
}
