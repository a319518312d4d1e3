/* SPDX-License-Identifier: MIT */
/*
 * crowd.c - programs whose shape, not whose heap, could cost a leak detector memory. usage: crowd SHAPE NR
 *
 * threads NR   so many threads that have allocated once are there
 * busy NR      the same, each having allocated by 256 different stacks
 * passing NR   so many have come and gone, eight at a time
 * sparse NR    so many blocks, each at the start of a GiB of address space of its own
 *
 * Says "ready" and waits for the end of its input.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/victims/victim.h"

enum { AT_ONCE = 8, STACK_BYTES = 64 << 10, LEVELS = 8 };

static pthread_barrier_t all_are_here;
static bool is_to_stay, is_busy;

FRAME static void by_left(unsigned path, int levels);
FRAME static void by_right(unsigned path, int levels);

static void by_either(unsigned path, int levels)
{
	if (!levels)
		free(hold(malloc(100)));
	else if (path & 1)
		by_left(path >> 1, levels - 1);
	else
		by_right(path >> 1, levels - 1);
}

FRAME static void by_left(unsigned path, int levels)
{
	by_either(path, levels);
	hold(NULL);
}

FRAME static void by_right(unsigned path, int levels)
{
	by_either(path, levels);
	hold(NULL);
}

static void *body(void *argument)
{
	void *volatile block = malloc(100);

	for (unsigned path = 0; is_busy && path < 1u << LEVELS; path++)
		by_either(path, LEVELS);
	if (is_to_stay) {
		pthread_barrier_wait(&all_are_here);
		pause();
	}
	free(block);
	return argument;
}

static bool start(pthread_t *thread)
{
	pthread_attr_t attr;
	bool is_good;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	is_good = !pthread_create(thread, &attr, body, NULL);
	pthread_attr_destroy(&attr);
	return is_good;
}

static bool threads(unsigned nr)
{
	pthread_t thread;

	is_to_stay = true;
	pthread_barrier_init(&all_are_here, NULL, nr + 1);
	for (unsigned i = 0; i < nr; i++) {
		if (!start(&thread))
			return false;
	}
	pthread_barrier_wait(&all_are_here);
	return true;
}

static bool passing(unsigned nr)
{
	pthread_t group[AT_ONCE];

	for (unsigned i = 0; i < nr; i += AT_ONCE) {
		for (unsigned k = 0; k < AT_ONCE; k++) {
			if (!start(&group[k]))
				return false;
		}
		for (unsigned k = 0; k < AT_ONCE; k++)
			pthread_join(group[k], NULL);
	}
	return true;
}

static bool sparse(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		char *volatile block = malloc((size_t)1 << 30);

		if (!block)
			return false;
		*block = 1;
	}
	return true;
}

static bool make(const char *shape, unsigned nr)
{
	if (is_busy || !strcmp(shape, "threads"))
		return threads(nr);
	if (!strcmp(shape, "passing"))
		return passing(nr);
	return !strcmp(shape, "sparse") && sparse(nr);
}

int main(int argc, char **argv)
{
	unsigned nr = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	is_busy = argc > 2 && !strcmp(argv[1], "busy");
	if (argc < 3 || !make(argv[1], nr))
		return 1;
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (getchar() >= 0)
		;
	_exit(0);
}
