/* SPDX-License-Identifier: MIT */
/*
 * A coroutine's stack is used, then cut: what was its upper part is unmapped or made unreadable, and a
 * smaller stack starts in what is left, so that memory an unwinder remembers is gone. Allocates at the
 * same distance from the bottom each time, through the same calls. 16 rounds; says how many blocks it lost.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "victim.h"

enum { STACK_BYTES = 128 * 1024, LEAST_BYTES = 24 * 1024, CUT_BYTES = 16 * 1024, AT_BYTES = 12 * 1024 };
static ucontext_t outside, inside;
static char *bottom;
static int depth, nr_lost;

FRAME static void lose(void)
{
	hold(malloc(24));
	nr_lost++;
}

/* Goes down to the same address, however it was called. */
FRAME static void go_down(void)
{
	char *here = __builtin_frame_address(0);

	hold(alloca((size_t)(here - (bottom + AT_BYTES))));
	lose();
	hold(here);
}

FRAME static void fill(int left)
{
	char here[600];

	hold(here);
	if (left)
		fill(left - 1);
	else
		go_down();
	hold(here);
}

static void coroutine(void)
{
	fill(depth);
}

FRAME static void run(size_t bytes, int levels)
{
	depth = levels;
	getcontext(&inside);
	inside.uc_stack.ss_sp = bottom;
	inside.uc_stack.ss_size = bytes;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
}

static void give_back(size_t from)
{
	mmap(bottom + from, STACK_BYTES - from, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

int main(void)
{
	for (int round = 0; round < 16; round++) {
		bottom = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		run(STACK_BYTES, 20 + round);
		run(STACK_BYTES, 20 + round);
		for (size_t bytes = LEAST_BYTES; bytes < STACK_BYTES; bytes += CUT_BYTES) {
			munmap(bottom + bytes, STACK_BYTES - bytes);
			run(bytes, 2);
			mmap(bottom + bytes, STACK_BYTES - bytes, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			run(bytes, 1);
			run(bytes, 0);
			give_back(bytes);
			run(STACK_BYTES, 20 + round);
		}
		munmap(bottom, STACK_BYTES);
	}
	printf("lost %d\n", nr_lost);
	return 0;
}
