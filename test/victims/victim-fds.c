/* SPDX-License-Identifier: MIT */
/*
 * Closes every descriptor from 3 on and opens two files: they must be 3 and 4, and hold at the end
 * what was written to them and nothing else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "victim.h"

FRAME static void lose(void)
{
	hold(malloc(640));
}

int main(void)
{
	char text[16] = "";
	int one, two;

	lose();
	if (close_range(3, ~0u, 0))
		return 2;
	one = open("one", O_CREAT | O_TRUNC | O_RDWR, 0600);
	two = open("two", O_CREAT | O_TRUNC | O_RDWR, 0600);
	lose();
	if (write(one, "first", 5) != 5 || write(two, "second", 6) != 6)
		return 3;
	lose();
	if (pread(one, text, sizeof(text), 0) != 5 || strcmp(text, "first"))
		return 4;
	printf("descriptors %d %d\n", one, two);
	return 0;
}
