/* SPDX-License-Identifier: MIT */
/* Loses BLOCKS blocks of BYTES bytes, prints "done" and ends with STATUS. usage: BLOCKS BYTES [STATUS] */
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

FRAME static void lose(size_t bytes)
{
	hold(malloc(bytes));
}

FRAME static void borrow(size_t bytes)
{
	free(hold(malloc(bytes)));
}

int main(int argc, char **argv)
{
	int blocks = argc > 1 ? atoi(argv[1]) : 3;
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;

	for (int i = 0; i < blocks; i++) {
		lose(bytes);
		borrow(bytes + 1);
	}
	puts("done");
	return argc > 3 ? atoi(argv[3]) : 0;
}
