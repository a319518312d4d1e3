/* SPDX-License-Identifier: MIT */
/* victim-overrun.c - writes one byte behind a block, then gives it back: a heap that checks itself ends the program. */
#include <stdlib.h>

int main(void)
{
	volatile char *block = malloc(24);

	block[24] = 7;
	free((void *)block);
	return 0;
}
