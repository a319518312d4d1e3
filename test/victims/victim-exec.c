/* SPDX-License-Identifier: MIT */
/* Loses blocks, becomes itself again with the same pid, and loses others: only those are reported. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "victim.h"

FRAME static void lose_before(void)
{
	hold(malloc(1000));
}

FRAME static void lose_after(void)
{
	hold(malloc(11));
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		lose_before();
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		return 2;
	}
	lose_after();
	puts("again");
	return 6;
}
