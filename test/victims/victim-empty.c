/* SPDX-License-Identifier: MIT */
/*
 * victim-empty.c - keeps blocks of no bytes, many at the start of a page, by pointers in a global; loses nothing. What
 * an allocator keeps between blocks must not be taken for them.
 */
#include <stdlib.h>

#include "victim.h"

enum { NR = 300 };

static void *kept[NR];

FRAME static void keep_empty(int i)
{
	size_t none = opaque(0);

	switch (i % 5) {
	case 0:
		kept[i] = malloc(none);
		break;
	case 1:
		kept[i] = calloc(1, none);
		break;
	case 2:
		kept[i] = aligned_alloc(4096, none);
		break;
	default:
		if (posix_memalign(&kept[i], i % 5 == 3 ? 4096 : 256, none))
			kept[i] = NULL;
	}
}

int main(void)
{
	for (int i = 0; i < NR; i++)
		keep_empty(i);
	return 0;
}
