/* SPDX-License-Identifier: MIT */
/*
 * scan.c - a heap to be searched. usage: bench-scan TOTAL-BYTES BLOCK-BYTES THREADS SECONDS [SHAPE]
 *
 * All blocks hang together, in one of the shapes below; THREADS that sleep. Says how long a fork takes
 * (`fork_us N`, the least of five), then works for SECONDS: pairs of malloc and free, how many every 10 ms
 * (`pairs SECONDS-SINCE-BOOT NUMBER`).
 *
 * list           each block points to the one allocated before it; the default
 * shuffled-list  the same, in random order: nothing is known of a block before the one before it was read
 * array          pointers to all of them in one more block, in random order
 * tree           a binary tree, its nodes in random order
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct block {
	struct block *next, *other;
};

static void *root;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static double fork_us(void)
{
	double best = 1e9;

	for (int i = 0; i < 5; i++) {
		double began = now_s(), took;
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		took = now_s() - began;
		best = took < best ? took : best;
		waitpid(pid, NULL, 0);
	}
	return best * 1e6;
}

static struct block *allocate(uint64_t bytes)
{
	struct block *block = malloc(bytes);

	if (!block)
		exit(1);
	for (uint64_t i = 0; i < bytes; i += 4096) /* no page stays untouched */
		((volatile char *)block)[i] = 0;
	block->next = block->other = NULL;
	return block;
}

static void shuffle(struct block **blocks, uint64_t nr)
{
	uint64_t state = 1;

	for (uint64_t i = nr; i > 1; i--) {
		struct block *moved = blocks[i - 1];
		uint64_t at;

		state = state * 6364136223846793005u + 1442695040888963407u;
		at = (state >> 32) * i >> 32;
		blocks[i - 1] = blocks[at];
		blocks[at] = moved;
	}
}

static void build(uint64_t nr, uint64_t bytes, const char *shape)
{
	bool is_array = !strcmp(shape, "array"), is_tree = !strcmp(shape, "tree");
	struct block **blocks = is_array ? malloc(nr * sizeof(*blocks))
					 : mmap(NULL, nr * sizeof(*blocks), PROT_READ | PROT_WRITE,
							   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (uint64_t i = 0; i < nr; i++)
		blocks[i] = allocate(bytes);
	if (strcmp(shape, "list"))
		shuffle(blocks, nr);
	for (uint64_t i = 0; i < nr && is_tree; i++) {
		blocks[i]->next = 2 * i + 1 < nr ? blocks[2 * i + 1] : NULL;
		blocks[i]->other = 2 * i + 2 < nr ? blocks[2 * i + 2] : NULL;
	}
	for (uint64_t i = 1; i < nr && !is_array && !is_tree; i++)
		blocks[i]->next = blocks[i - 1];
	root = is_array ? (void *)blocks : blocks[is_tree ? 0 : nr - 1];
	if (!is_array)
		(void)munmap(blocks, nr * sizeof(*blocks));
}

int main(int argc, char **argv)
{
	uint64_t total, bytes, pairs = 0;
	double end, next;

	if (argc != 5 && argc != 6)
		return 2;
	total = strtoull(argv[1], NULL, 10);
	bytes = strtoull(argv[2], NULL, 10);
	build((total + bytes - 1) / bytes, bytes, argc > 5 ? argv[5] : "list");
	for (int i = atoi(argv[3]); i > 0; i--) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, idle, NULL))
			return 1;
	}
	if (atof(argv[4]) > 0)
		printf("fork_us %.0f\n", fork_us());
	fflush(stdout);
	end = now_s() + atof(argv[4]);
	for (next = now_s() + 0.01; now_s() < end; pairs++) {
		void *volatile block = malloc(100 + pairs % 1000);

		free(block);
		if (now_s() >= next) {
			printf("pairs %.6f %llu\n", now_s(), (unsigned long long)pairs);
			fflush(stdout);
			next += 0.01;
		}
	}
	_exit(root ? 0 : 1);
}
