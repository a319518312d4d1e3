/* SPDX-License-Identifier: MIT */
/*
 * victim.h - the few words all victims share: functions that stay functions, blocks that stay blocks.
 */
#ifndef LW_TEST_VICTIM_H
#define LW_TEST_VICTIM_H

#include <stddef.h>

/* Keeps its own frame: not inlined, not cloned, not left by a jump. */
#define FRAME __attribute__((noinline, noclone, unused))
#ifdef __clang__
#undef FRAME
#define FRAME __attribute__((noinline, unused))
#endif

/* The compiler must believe that p is looked at here. */
static inline void *hold(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

/* A size the compiler does not know, so that it cannot reason about the request. */
static inline size_t opaque(size_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

#endif
