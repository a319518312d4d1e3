/* SPDX-License-Identifier: MIT */
/* Uses a library that gives back all it has in its destructor, which runs after everything else. */
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

int state_push(int value);

FRAME static void at_exit_too(void)
{
	hold(malloc(17)); /* lost at the very end */
}

int main(void)
{
	int n = 0;

	for (int i = 0; i < 25; i++)
		n = state_push(i);
	if (atexit(at_exit_too))
		return 2;
	printf("pushed %d\n", n);
	return 0;
}
