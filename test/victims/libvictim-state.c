/* SPDX-License-Identifier: MIT */
/* A library with a constructor that allocates and a destructor that frees, as libraries do. */
#include <stdlib.h>

#include "victim.h"

int state_push(int value);

struct link {
	struct link *next;
	int value;
};

static struct link *top;
static int *numbers;

__attribute__((constructor)) static void state_open(void)
{
	numbers = hold(calloc(100, sizeof(*numbers)));
}

FRAME int state_push(int value)
{
	struct link *link = hold(malloc(sizeof(*link)));

	if (!link)
		return -1;
	*link = (struct link){ top, value };
	top = link;
	return ++numbers[0];
}

__attribute__((destructor)) static void state_close(void)
{
	while (top) {
		struct link *next = top->next;

		free(top);
		top = next;
	}
	free(numbers);
}
