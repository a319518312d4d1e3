/* SPDX-License-Identifier: MIT */
/* Three threads make 1.5 million allocations and frees; what is left is known to the byte. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

FRAME static void pour(unsigned seed)
{
	void *window[100] = { NULL };

	for (int i = 0; i < 250000; i++) {
		unsigned at;

		seed = seed * 69069u + 5u;
		at = (seed >> 16) % 100;
		free(window[at]);
		window[at] = hold(malloc(1 + (seed >> 8) % 900));
	}
	for (int i = 0; i < 100; i++)
		free(window[i]);
}

FRAME static void lose(void)
{
	hold(malloc(333));
}

static void *body(void *argument)
{
	pour(*(unsigned *)argument);
	lose();
	return NULL;
}

int main(void)
{
	pthread_t threads[3];
	unsigned seeds[3] = { 1, 2, 3 };

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, body, &seeds[i]))
			return 2;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	puts("poured");
	return 0;
}
