/* SPDX-License-Identifier: MIT */
/* Threads with the smallest stack there is allocate at its very end. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

FRAME static void *at_the_bottom(int depth)
{
	char here[200];
	void *p;

	hold(here);
	if (depth)
		p = at_the_bottom(depth - 1);
	else
		p = hold(malloc(90));
	hold(here);
	return p;
}

FRAME static void lose(void)
{
	hold(malloc(15));
}

static void *body(void *unused)
{
	for (int i = 0; i < 50; i++)
		free(at_the_bottom(20));
	lose();
	return unused;
}

int main(void)
{
	pthread_attr_t small;
	int nr = 0;

	pthread_attr_init(&small);
	if (pthread_attr_setstacksize(&small, 16384))
		return 2;
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &small, body, NULL))
			return 3;
		pthread_join(thread, NULL);
		nr++;
	}
	printf("threads %d\n", nr);
	return 0;
}
