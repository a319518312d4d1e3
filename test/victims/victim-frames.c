/* SPDX-License-Identifier: MIT */
/*
 * Optimised code: a function left by a jump (its frame is gone, the caller answers for it), and one
 * inlined into two callers (it still has its name, and two sites).
 */
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

FRAME static void *jump_to_malloc(size_t bytes)
{
	return malloc(bytes * 2);
}

FRAME static void through_jump(void)
{
	hold(jump_to_malloc(30));
	hold(NULL);
}

static inline __attribute__((always_inline)) void *make_inline(size_t bytes)
{
	return hold(malloc(bytes + 4));
}

FRAME static void first_caller(void)
{
	make_inline(36);
}

FRAME static void second_caller(void)
{
	make_inline(46);
}

int main(void)
{
	through_jump();
	first_caller();
	second_caller();
	puts("framed");
	return 0;
}
