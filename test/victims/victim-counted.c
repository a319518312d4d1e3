/* SPDX-License-Identifier: MIT */
/*
 * Two threads allocate and free until they are killed, and count what they did in a shared FILE:
 * before and after each operation, so that a reader knows the bounds for the operation in flight.
 * usage: FILE
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "victim.h"

enum { NR_THREADS = 2, NR_KEPT = 500 };

struct tally {
	uint64_t allocs_begun, allocs_done, frees_begun, frees_done;
	uint64_t bytes_allocated, bytes_freed; /* of operations done */
	uint64_t reserved[2];
};

static struct tally *tallies;

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#define COUNT(word, by) __atomic_store_n(&(word), (word) + (by), __ATOMIC_RELEASE)

FRAME static void *take(struct tally *tally, size_t bytes)
{
	void *block;

	COUNT(tally->allocs_begun, 1);
	block = hold(malloc(bytes));
	COUNT(tally->allocs_done, 1);
	COUNT(tally->bytes_allocated, bytes);
	return block;
}

FRAME static void give(struct tally *tally, void *block, size_t bytes)
{
	COUNT(tally->frees_begun, 1);
	free(block);
	COUNT(tally->frees_done, 1);
	COUNT(tally->bytes_freed, bytes);
}

static void *churn(void *argument)
{
	struct tally *tally = argument;
	uint32_t random = (uint32_t)(tally - tallies) + 1;
	void *kept[NR_KEPT] = {0};
	size_t sizes[NR_KEPT];

	for (;;) {
		uint32_t i = next_random(&random) % NR_KEPT;

		if (kept[i])
			give(tally, kept[i], sizes[i]);
		sizes[i] = 16 + next_random(&random) % 1000;
		kept[i] = take(tally, sizes[i]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = open(argc > 1 ? argv[1] : "", O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t thread;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 1;
	tallies = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tallies == MAP_FAILED || pthread_create(&thread, NULL, churn, &tallies[0]))
		return 1;
	if (write(1, "ready\n", 6) != 6)
		return 1;
	churn(&tallies[1]);
	return 0;
}
