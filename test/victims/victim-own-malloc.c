/* SPDX-License-Identifier: MIT */
/*
 * The program brings its own malloc, a bump allocator in static memory, and must go on using it:
 * every block lies in its arena, and it has served what it was asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "victim.h"

static _Alignas(16) char arena[8 << 20];
static size_t used;
static unsigned nr_served;

void *malloc(size_t bytes)
{
	size_t at = __atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15, __ATOMIC_RELAXED);

	if (at + bytes + 16 > sizeof(arena)) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(arena + at, &bytes, sizeof(bytes));
	__atomic_add_fetch(&nr_served, 1, __ATOMIC_RELAXED);
	return arena + at + 16;
}

void *calloc(size_t nr, size_t bytes)
{
	return malloc(nr * bytes); /* never used twice: still zero */
}

void *realloc(void *old, size_t bytes)
{
	void *p = malloc(bytes);
	size_t old_bytes = 0;

	if (old)
		memcpy(&old_bytes, (char *)old - 16, sizeof(old_bytes));
	if (p && old)
		memcpy(p, old, old_bytes < bytes ? old_bytes : bytes);
	return p;
}

void free(void *p)
{
	if (p && ((char *)p < arena || (char *)p >= arena + sizeof(arena)))
		abort();
}

int main(void)
{
	unsigned before = nr_served;
	char *text = hold(strdup("mine"));

	for (int i = 0; i < 100; i++)
		free(hold(malloc(40)));
	free(hold(reallocarray(hold(malloc(10)), 10, 40))); /* the C library's uses the program's realloc() */
	if (text < arena || text >= arena + sizeof(arena))
		return 4;
	text = hold(realloc(text, 100));
	if (strcmp(text, "mine"))
		return 5;
	printf("served %u\n", nr_served - before);
	return 0;
}
