/* SPDX-License-Identifier: MIT */
/*
 * Leaks that no check at exit sees, because exit frees all of it. usage: victim-hidden HOW [SECONDS]
 *
 *   list     a thread keeps adding to a list, which a handler of atexit frees
 *   queue    producers are faster than the consumers; the rest is freed by a destructor of the program,
 *	      and exit is called by another thread than the first
 *   cache    fills for a third of the time and stops; kept
 *   steady   a ring of blocks, always replaced; a handler frees it
 *   forked   as list, in a forked child whose parent had grown before
 *
 * Says "ready" after its time. With `kill` as a third argument it goes on until it is killed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

struct node {
	struct node *next;
	char room[184];
};

enum { PRODUCERS = 3, CONSUMERS = 1, RING = 32, PER_SECOND = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *list;
static void *ring[RING];
static double seconds = 1.5, begin;
static int is_endless;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int goes_on(void)
{
	return is_endless || now() < begin + seconds;
}

static void push(struct node *node)
{
	pthread_mutex_lock(&lock);
	node->next = list;
	list = node;
	pthread_mutex_unlock(&lock);
}

static struct node *pop(void)
{
	struct node *node;

	pthread_mutex_lock(&lock);
	node = list;
	if (node)
		list = node->next;
	pthread_mutex_unlock(&lock);
	return node;
}

FRAME static void add(void)
{
	push(hold(malloc(sizeof(struct node))));
}

FRAME static void fill(int i)
{
	if (now() < begin + seconds / 3 || i < 20)
		push(hold(malloc(sizeof(struct node))));
	free(hold(malloc(30))); /* time goes on for us only while something is allocated */
}

FRAME static void replace(int i)
{
	free(ring[i % RING]);
	ring[i % RING] = hold(malloc(500));
}

/* How much a thread is to have done by now: by the clock, so that a busy machine bends no curve. */
static int is_behind(int nr_done)
{
	return nr_done < (now() - begin) * PER_SECOND;
}

static void *produce(void *unused)
{
	for (int nr = 0; goes_on(); usleep(400))
		for (; is_behind(nr); nr++)
			add();
	return unused;
}

static void *consume(void *unused)
{
	for (int nr = 0; goes_on(); usleep(400))
		for (; is_behind(nr); nr++)
			free(pop());
	return unused;
}

static void free_all(void)
{
	for (struct node *node; (node = pop());)
		free(node);
	for (int i = 0; i < RING; i++)
		free(ring[i]);
}

static int is_freed_late;

__attribute__((destructor)) static void late(void)
{
	if (is_freed_late)
		free_all();
}

static void *end_of_queue(void *unused)
{
	puts("done");
	exit(0);
	return unused;
}

static void run_threads(int nr_producers, int nr_consumers)
{
	pthread_t threads[PRODUCERS + CONSUMERS];

	for (int i = 0; i < nr_producers; i++)
		pthread_create(&threads[i], NULL, produce, NULL);
	for (int i = nr_producers; i < nr_producers + nr_consumers; i++)
		pthread_create(&threads[i], NULL, consume, NULL);
	while (now() < begin + seconds)
		usleep(5000);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < nr_producers + nr_consumers; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "list";
	pthread_t ender;

	setvbuf(stdout, NULL, _IONBF, 0);
	seconds = argc > 2 ? atof(argv[2]) : seconds;
	is_endless = argc > 3;
	begin = now();
	if (!strcmp(how, "cache") || !strcmp(how, "steady")) {
		int is_cache = *how == 'c';

		if (!is_cache)
			atexit(free_all);
		for (int i = 0; goes_on(); i++, usleep(500))
			is_cache ? fill(i) : replace(i);
		puts("done");
		return 0;
	}
	if (!strcmp(how, "queue")) {
		is_freed_late = 1;
		run_threads(PRODUCERS, CONSUMERS);
		pthread_create(&ender, NULL, end_of_queue, NULL);
		pthread_join(ender, NULL);
	}
	atexit(free_all);
	run_threads(1, 0);
	if (!strcmp(how, "forked")) {
		pid_t child = fork();
		int status;

		if (child)
			waitpid(child, &status, 0);
		free_all();
		begin = now();
		if (!child)
			run_threads(1, 0);
	}
	puts("done");
	return 0;
}
