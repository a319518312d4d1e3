/* SPDX-License-Identifier: MIT */
/*
 * scan.c - a heap to be searched. usage: bench-scan TOTAL-BYTES BLOCK-BYTES THREADS SECONDS
 *
 * A list through all blocks, so that each is reached from the one before; THREADS that sleep. Says how long a fork takes
 * (`fork_us N`, the least of five), then works for SECONDS: pairs of malloc and free, how many every 10 ms
 * (`pairs SECONDS-SINCE-BOOT NUMBER`).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct block {
	struct block *next;
};

static struct block *list;

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

int main(int argc, char **argv)
{
	uint64_t total, bytes, pairs = 0;
	double end, next;

	if (argc != 5)
		return 2;
	total = strtoull(argv[1], NULL, 10);
	bytes = strtoull(argv[2], NULL, 10);
	for (uint64_t done = 0; done < total; done += bytes) {
		struct block *block = malloc(bytes);

		if (!block)
			return 1;
		for (uint64_t i = 0; i < bytes; i += 4096) /* no page stays untouched */
			((volatile char *)block)[i] = 0;
		block->next = list;
		list = block;
	}
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
	_exit(list ? 0 : 1);
}
