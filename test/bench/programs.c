/* SPDX-License-Identifier: MIT */
/*
 * programs.c - the small workloads of the benchmark, in one program. usage: programs NAME [ARGUMENTS]
 *
 * pairs FRAMES ROUNDS    malloc and free, one after the other, below so many frames; prints ns a pair
 * swap ROUNDS THREADS    threads put blocks into a shared table and free what lay there: half of all
 *                        frees are in another thread than the allocation
 * sites NR               one block lost at each of NR different stacks, for the time of the report
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/victims/victim.h"

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- pairs ---- */

FRAME static double pairs_here(long rounds)
{
	double start = now_ns();

	for (long i = 0; i < rounds; i++)
		free(hold(malloc(64)));
	return (now_ns() - start) / (double)rounds;
}

FRAME static double pairs_below(int frames, long rounds)
{
	double ns = frames > 0 ? pairs_below(frames - 1, rounds) : pairs_here(rounds);

	hold(NULL);
	return ns;
}

static void *pairs_in_thread(void *argument)
{
	double *number = argument;

	*number = pairs_here((long)*number);
	return NULL;
}

/* Few frames: a thread's start has less of them than the program's. */
static double pairs_at_four(long rounds)
{
	double number = (double)rounds;
	pthread_t thread;

	if (pthread_create(&thread, NULL, pairs_in_thread, &number) || pthread_join(thread, NULL))
		exit(1);
	return number;
}

static int pairs(int frames, long rounds)
{
	if (frames <= 4) {
		printf("ns_per_pair %.2f\n", pairs_at_four(rounds));
		return 0;
	}
	/* besides: pairs_here, the last pairs_below, pairs, main and two of libc */
	printf("ns_per_pair %.2f\n", pairs_below(frames > 6 ? frames - 6 : 0, rounds));
	return 0;
}

/* ---- swap ---- */

enum { SLOTS = 16384, MAX_THREADS = 64 };
static void *slots[SLOTS];
static long swap_rounds;

FRAME static void swap_one(uint64_t *seed)
{
	char *mine;

	*seed = *seed * UINT64_C(6364136223846793005) + 1;
	mine = hold(malloc(16 + (*seed >> 33) % 500));
	mine[0] = 1;
	free(__atomic_exchange_n(&slots[*seed >> 50], mine, __ATOMIC_ACQ_REL));
}

static void *swap_body(void *argument)
{
	uint64_t seed = (uintptr_t)argument;

	for (long i = 0; i < swap_rounds; i++)
		swap_one(&seed);
	return NULL;
}

static int swap(long rounds, int nr_threads)
{
	pthread_t threads[MAX_THREADS];

	swap_rounds = rounds;
	for (int i = 0; i < nr_threads && i < MAX_THREADS; i++)
		if (pthread_create(&threads[i], NULL, swap_body, (void *)(uintptr_t)(i * 77 + 5)))
			return 1;
	for (int i = 0; i < nr_threads && i < MAX_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		free(slots[i]);
	return 0;
}

/* ---- sites ---- */

FRAME static void site_left(unsigned path, unsigned depth);
FRAME static void site_right(unsigned path, unsigned depth);

static void site(unsigned path, unsigned depth)
{
	if (!depth)
		hold(malloc(24));
	else if (path & 1)
		site_left(path >> 1, depth - 1);
	else
		site_right(path >> 1, depth - 1);
}

FRAME static void site_left(unsigned path, unsigned depth)
{
	site(path, depth);
	hold(NULL);
}

FRAME static void site_right(unsigned path, unsigned depth)
{
	site(path, depth);
	hold(NULL);
}

static int sites(unsigned nr)
{
	unsigned depth = 1;

	while (1u << depth < nr)
		depth++;
	for (unsigned path = 0; path < nr; path++)
		site(path, depth);
	return 0;
}

int main(int argc, char **argv)
{
	long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;

	if (argc > 1 && !strcmp(argv[1], "pairs"))
		return pairs((int)first, second);
	if (argc > 1 && !strcmp(argv[1], "swap"))
		return swap(first, (int)second);
	if (argc > 1 && !strcmp(argv[1], "sites"))
		return sites((unsigned)first);
	fprintf(stderr, "usage: programs pairs FRAMES ROUNDS | swap ROUNDS THREADS | sites NR\n");
	return 2;
}
