/* SPDX-License-Identifier: MIT */
/*
 * tables.c - what the parts of an event take, without hooks: stacks, and the table of blocks.
 *
 * usage: tables capture FRAMES (5 to 68) | blocks NR
 * capture   prints the frames there are, then ns for each way to know a stack: the memo knows it; the rules of its
 *           frames lie in the last walk's trail; in the table of rules; nowhere, so that .eh_frame is read; and, last, a
 *           walk along the trail with the look-up of the site
 * blocks    prints ns to remove a block and insert it again with NR of 48 bytes in the table: the next one each
 *           time, and any one
 */
#include "test/unit/tables.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "preload/record/capture.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/rules.h"
#include "preload/unwind/stack.h"
#include "preload/unwind/trail.h"
#include "test/victims/victim.h"

enum { KEY = 1, ROUNDS = 300000, COLD_ROUNDS = 500, BLOCK_BYTES = 48, BLOCK_ROUNDS = 5000000 };

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- capture ---- */

enum way { BY_TRAIL, BY_RULES, COLD, NOTHING };

static void make_ready(enum way way)
{
	if (way != BY_TRAIL)
		lw_self.trail->nr = 0;
	if (way == COLD || way == NOTHING)
		lw_rules_clear();
}

static double walk_ns(const struct lw_frame *frame, enum way way, long rounds)
{
	struct lw_stack *stack = &lw_self.scratch->stack;
	double start = cpu_ns();

	for (long i = 0; i < rounds; i++) {
		make_ready(way);
		if (way != NOTHING)
			lw_unwind_walk(&lw_self, frame, LW_MAX_FRAMES, stack);
	}
	return (cpu_ns() - start) / (double)rounds;
}

static double memo_ns(const struct lw_frame *frame)
{
	double start = cpu_ns();

	for (long i = 0; i < ROUNDS; i++) {
		if (!lw_memo_find(&lw_self, hold((void *)(uintptr_t)frame), KEY))
			abort();
	}
	return (cpu_ns() - start) / ROUNDS;
}

static double capture_ns(const struct lw_frame *frame)
{
	double start = cpu_ns();

	for (long i = 0; i < ROUNDS; i++)
		lw_capture(&lw_self, frame, KEY, 0);
	return (cpu_ns() - start) / ROUNDS;
}

FRAME static void capture_here(void)
{
	double trail, rules, cold, capture;
	TABLES_FRAME(frame);

	if (!lw_track_enter())
		abort();
	lw_capture(&lw_self, &frame, KEY, KEY);
	lw_unwind_walk(&lw_self, &frame, LW_MAX_FRAMES, &lw_self.scratch->stack);
	printf("%u %.1f", lw_self.scratch->stack.nr, memo_ns(&frame));
	trail = walk_ns(&frame, BY_TRAIL, ROUNDS);
	rules = walk_ns(&frame, BY_RULES, ROUNDS);
	capture = capture_ns(&frame);
	cold = walk_ns(&frame, COLD, COLD_ROUNDS) - walk_ns(&frame, NOTHING, COLD_ROUNDS);
	printf(" %.1f %.1f %.1f %.1f\n", trail, rules, cold, capture);
	lw_track_leave();
}

static void no_further(int frames)
{
	(void)frames;
	abort();
}

/* 64 functions, each with a return address of its own in the next. */
#define LEVEL(name, next)                                                                          \
	FRAME static void name(int frames)                                                         \
	{                                                                                          \
		if (frames > 0)                                                                    \
			next(frames - 1);                                                          \
		else                                                                               \
			capture_here();                                                            \
		hold(NULL);                                                                        \
	}
#define EIGHT(n, next)                                                                             \
	LEVEL(level_##n##7, next)                                                                  \
	LEVEL(level_##n##6, level_##n##7)                                                          \
	LEVEL(level_##n##5, level_##n##6)                                                          \
	LEVEL(level_##n##4, level_##n##5)                                                          \
	LEVEL(level_##n##3, level_##n##4)                                                          \
	LEVEL(level_##n##2, level_##n##3)                                                          \
	LEVEL(level_##n##1, level_##n##2)                                                          \
	LEVEL(level_##n##0, level_##n##1)
EIGHT(7, no_further)
EIGHT(6, level_70)
EIGHT(5, level_60)
EIGHT(4, level_50)
EIGHT(3, level_40)
EIGHT(2, level_30)
EIGHT(1, level_20)
EIGHT(0, level_10)

/* ---- blocks ---- */

static uintptr_t address(uint64_t i)
{
	return UINT64_C(0x600000000000) + i * BLOCK_BYTES;
}

static void insert(uint64_t i)
{
	struct lw_block block = { .site = 1 + (uint32_t)i % 1000, .birth = 5, .bytes = BLOCK_BYTES - 8 }, stale;
	bool is_stale;

	if (!lw_blocks_insert(lw_hide((const void *)address(i)), &block, &is_stale, &stale) || is_stale)
		abort();
}

static double again_ns(uint64_t nr, bool any)
{
	uint64_t i = 0, seed = 3;
	struct lw_block block;
	double start = cpu_ns();

	for (long round = 0; round < BLOCK_ROUNDS; round++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		i = any ? (seed >> 32) * nr >> 32 : i + 1 < nr ? i + 1 : 0;
		if (!lw_blocks_remove(address(i), &block))
			abort();
		insert(i);
	}
	return (cpu_ns() - start) / BLOCK_ROUNDS;
}

static void blocks(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		insert(i);
	printf("%.1f %.1f\n", again_ns(nr, false), again_ns(nr, true));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	/* besides: the last level, main and three of libc's start */
	int frames = atoi(argv[2]) - 5;

	tables_start();
	lw_hot.depth = LW_MAX_FRAMES;
	if (!strcmp(argv[1], "capture"))
		level_00(frames < 0 ? 0 : frames > 63 ? 63 : frames);
	else
		blocks(strtoul(argv[2], NULL, 10));
	return 0;
}
