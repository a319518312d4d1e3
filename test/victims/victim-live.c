/* SPDX-License-Identifier: MIT */
/*
 * victim-live.c - a program that is watched while it runs, and looks whether it notices.
 *
 * Arguments: "grow" keeps a block of 100 bytes every millisecond, "work" allocates and frees, "idle"
 * sleeps, "wild" has SITES distinct stacks, "fork" goes on as "grow" in a
 * child too and says its number, "latency" measures malloc and free for a second (each line read
 * asks for it) and says what 999 of 1000 stay below, in ns. On SIGUSR1 it says what a program can see of a helper: number of
 * threads, children, the word libc keeps; "end" on stdin (or its end) ends it.
 */
#include <errno.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

extern char __libc_single_threaded;

struct node {
	struct node *next;
	char rest[92];
};

static struct node *list;
static volatile sig_atomic_t is_asked;

static void on_signal(int nr)
{
	(void)nr;
	is_asked = 1;
}

FRAME static void grow_here(void)
{
	struct node *node = malloc(sizeof(*node));

	node->next = list;
	list = node;
}

FRAME static void work_here(void)
{
	for (int i = 0; i < 100; i++)
		free(hold(malloc(opaque((size_t)i * 10 + 1))));
}

/* A distinct stack for each number: its bits choose which of two calls is made at each level. */
FRAME static void *wild(unsigned bits, unsigned left, size_t bytes)
{
	void *p;

	if (!left)
		return hold(malloc(bytes));
	if (bits & 1)
		p = wild(bits >> 1, left - 1, bytes);
	else
		p = wild(bits >> 1, left - 1, bytes + 1);
	return hold(p);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One measure is four pairs, so that the clock's own grain does not matter. */
static void measure(void)
{
	static uint32_t histogram[100000];
	uint64_t began = now_ns(), last = began, nr = 0, sum = 0;
	size_t ns = 0;

	memset(histogram, 0, sizeof(histogram));
	while (last - began < 1000000000u) {
		uint64_t now, took;

		for (int i = 0; i < 4; i++)
			free(hold(malloc(opaque(64))));
		now = now_ns();
		took = now - last;
		histogram[took < 99999 ? took : 99999]++;
		last = now;
		nr++;
	}
	while (sum * 1000 < nr * 999)
		sum += histogram[ns++];
	printf("p99.9 %zu\n", ns);
	fflush(stdout);
}

static int nr_tasks(void)
{
	DIR *dir = opendir("/proc/self/task");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr - 2;
}

static int nr_open(void)
{
	int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
	return nr;
}

static void say(void)
{
	int got = waitpid(-1, NULL, WNOHANG), wrong = got < 0 ? errno : 0;

	printf("tasks %d single %d wait %s open %d unshare %d\n", nr_tasks(), __libc_single_threaded,
		wrong == ECHILD ? "ECHILD" : "-", nr_open(), unshare(CLONE_NEWUSER) ? errno : 0);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "work";
	unsigned nr_sites = argc > 2 ? (unsigned)atoi(argv[2]) : 1000, nr_changing = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	struct pollfd input = {0, POLLIN, 0};
	unsigned next = 0;

	signal(SIGUSR1, on_signal);
	for (unsigned i = 0; !strcmp(what, "wild") && i < nr_sites; i++)
		wild(i, 20, 16);
	if (!strcmp(what, "fork")) {
		pid_t child = fork();

		if (child)
			printf("child %d\n", child);
		what = "grow";
	}
	puts("ready");
	fflush(stdout);
	while (!strcmp(what, "latency") && getchar() == '\n')
		measure();
	for (;;) {
		if (poll(&input, 1, !strcmp(what, "idle") ? -1 : 1) > 0 && !is_asked)
			break;
		if (is_asked) {
			is_asked = 0;
			say();
		}
		if (!strcmp(what, "grow"))
			grow_here();
		for (unsigned i = 0; !strcmp(what, "wild") && i < nr_changing / 1000 + 1; i++)
			wild(next++ % (nr_changing ? nr_changing : nr_sites), 20, 16);
		if (strcmp(what, "idle"))
			work_here();
	}
	while (list) {
		struct node *node = list;

		list = node->next;
		free(node);
	}
	return 7;
}
