/* SPDX-License-Identifier: MIT */
/*
 * victim-reach.c - memory that is lost, lost through another, and still pointed to; then it ends, or with `wait`
 * or `many` (then more is lost) runs on: a thread waits in epoll_wait, which must not see a stop, another moves pointers about.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "victim.h"

struct node {
	struct node *next;
	char room[72];
};

static struct node *volatile kept;
static struct node *volatile lists[2];
static int nr_interrupted;

FRAME static void lose(void)
{
	(void)hold(malloc(333));
}

FRAME static struct node *make_head(void)
{
	return calloc(1, sizeof(struct node));
}

FRAME static struct node *make_tail(void)
{
	return calloc(1, sizeof(struct node) + 20);
}

/* More than all registers of all threads could hold. */
FRAME static void lose_many(void)
{
	for (int i = 0; i < 200; i++)
		(void)hold(malloc(50));
}

FRAME static void lose_chain(void)
{
	struct node *head = make_head();

	head->next = make_tail();
	head->next->next = make_tail();
	(void)hold(head);
}

FRAME static void keep_one(void)
{
	kept = malloc(sizeof(struct node));
	memset(kept, 0, sizeof(struct node));
}

FRAME static void fill_list(void)
{
	for (int i = 0; i < 1000; i++) {
		struct node *node = malloc(sizeof(*node));

		node->next = lists[0];
		lists[0] = node;
	}
}

static void *move_about(void *unused)
{
	for (int from = 0;; from = !from) {
		while (lists[from]) {
			struct node *node = lists[from];

			lists[from] = node->next;
			node->next = lists[!from];
			lists[!from] = node;
		}
	}
	return unused;
}

static void *wait_for_events(void *unused)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(fd, &event, 1, -1) < 0 && errno == EINTR)
			nr_interrupted++;
	}
	return unused;
}

FRAME static void wipe(void)
{
	volatile char room[8192];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

int main(int argc, char **argv)
{
	struct pollfd stop = { 0, POLLIN, 0 };
	pthread_t thread;

	lose();
	lose_chain();
	keep_one();
	fill_list();
	if (argc > 1 && !strcmp(argv[1], "many"))
		lose_many();
	wipe();
	if (argc < 2)
		return 0;
	(void)pthread_create(&thread, NULL, move_about, NULL);
	(void)pthread_create(&thread, NULL, wait_for_events, NULL);
	(void)puts("ready");
	(void)fflush(stdout);
	while (poll(&stop, 1, 0) == 0) {
		struct timespec pause = { .tv_nsec = 10000000 };

		free(hold(malloc(10)));
		(void)nanosleep(&pause, NULL);
	}
	printf("interrupted %d times\n", nr_interrupted);
	return 0;
}
