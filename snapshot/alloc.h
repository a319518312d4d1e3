/* SPDX-License-Identifier: MIT */
/*
 * alloc.h - memory for leakwatch-snapshot, which ends when there is none.
 *
 * A reporter that ran out of memory has nothing better to do than to say so: the process that
 * waits for it sees the end of the pipe and falls back to its own means. So these never return
 * NULL, and nobody above needs a path for it. Sizes are products checked for overflow.
 */
#ifndef LW_SNAPSHOT_ALLOC_H
#define LW_SNAPSHOT_ALLOC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *alloc_check(void *memory)
{
	if (!memory) {
		(void)fputs("leakwatch-snapshot: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* Zeroed; room for at least one. */
static inline void *alloc_array(size_t nr, size_t bytes)
{
	return alloc_check(calloc(nr ? nr : 1, bytes ? bytes : 1));
}

/* The array with room for at least one entry more than nr; doubles, so that growing is cheap. */
static inline void *alloc_grow(void *array, size_t nr, size_t *max, size_t bytes)
{
	if (nr < *max)
		return array;
	*max = *max ? *max * 2 : 16;
	return alloc_check(reallocarray(array, *max, bytes));
}

/* nr_bytes of text and a NUL. */
static inline char *alloc_text(const char *text, size_t nr_bytes)
{
	char *copy = alloc_array(nr_bytes + 1, 1);

	if (nr_bytes)
		memcpy(copy, text, nr_bytes);
	return copy;
}

#endif
