/* SPDX-License-Identifier: MIT */
/*
 * heap.c - holds so many MiB of blocks of one size, linked through themselves, says "ready" and waits for
 * the end of its input. usage: heap BLOCK-BYTES MIB; what one asks for is counted, not what the heap adds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
	struct link *next;
};

int main(int argc, char **argv)
{
	size_t block_bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 32;
	size_t nr = argc > 2 ? (strtoul(argv[2], NULL, 10) << 20) / block_bytes : 0;
	struct link *first = NULL;

	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; i < nr; i++) {
		struct link *block = malloc(block_bytes);

		if (!block)
			return 1;
		memset(block, 1, block_bytes);
		block->next = first;
		first = block;
	}
	puts("ready");
	while (getchar() >= 0)
		;
	return first == NULL && nr;
}
