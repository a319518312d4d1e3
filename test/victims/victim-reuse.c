/* SPDX-License-Identifier: MIT */
/*
 * Six threads swap blocks through a few shared slots, so that an address freed by one is given to
 * another at once. What is left at the end is known exactly.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

enum { THREADS = 6, SLOTS = 32, ROUNDS = 40000, LOST = 5 };
static void *slots[SLOTS];

FRAME static void swap(unsigned *seed)
{
	size_t bytes;
	void *p;

	*seed = *seed * 22695477u + 1u;
	bytes = 1040 + (*seed >> 20) % 3 * 32; /* too big for the allocator's per-thread caches */
	p = hold(*seed >> 8 & 1 ? malloc(bytes) : calloc(1, bytes));
	if (*seed >> 9 & 1)
		p = hold(realloc(p, bytes + 2000));
	free(__atomic_exchange_n(&slots[*seed >> 27], p, __ATOMIC_ACQ_REL));
}

FRAME static void lose(void)
{
	hold(malloc(72));
}

static void *body(void *argument)
{
	unsigned seed = *(unsigned *)argument;

	for (int i = 0; i < ROUNDS; i++)
		swap(&seed);
	for (int i = 0; i < LOST; i++)
		lose();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	unsigned seeds[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = i * 7919 + 3;
		if (pthread_create(&threads[i], NULL, body, &seeds[i]))
			return 2;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		free(slots[i]);
	puts("calm");
	return 0;
}
