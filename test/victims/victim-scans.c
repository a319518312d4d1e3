/* SPDX-License-Identifier: MIT */
/*
 * victim-scans.c - what decides whether a search is made and what it may say. usage: victim-scans brief|room [MIB]
 * brief: until the input ends, blocks that nothing points to for a moment, since their addresses are kept in disguise; one is
 * lost for good. room: so much memory that is never touched, one block lost; then it ends.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "victim.h"

enum { NR_BRIEF = 32, AT_ONCE_MIB = 1024, MIB = 1 << 20 };

static void *volatile kept[1 << 16];

FRAME static void lose(void)
{
	(void)hold(malloc(333));
}

FRAME static void *make_brief(void)
{
	return hold(malloc(48));
}

FRAME static void be_brief(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	uintptr_t disguised[NR_BRIEF];

	for (int i = 0; i < NR_BRIEF; i++)
		disguised[i] = ~(uintptr_t)make_brief();
	(void)nanosleep(&moment, NULL);
	for (int i = 0; i < NR_BRIEF; i++)
		free((void *)~disguised[i]);
}

FRAME static void *make_room(size_t bytes)
{
	return malloc(bytes);
}

FRAME static void wipe(void)
{
	volatile char room[8192];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

int main(int argc, char **argv)
{
	struct pollfd stop = { 0, POLLIN, 0 };
	long mib = argc > 2 ? atol(argv[2]) : 0;

	lose();
	wipe();
	for (int i = 0; mib > 0; mib -= AT_ONCE_MIB) {
		kept[i] = make_room((size_t)(mib < AT_ONCE_MIB ? mib : AT_ONCE_MIB) * MIB);
		if (!kept[i++])
			return 3;
	}
	(void)puts("ready");
	(void)fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "brief")) {
		while (poll(&stop, 1, 0) == 0)
			be_brief();
	}
	return 0;
}
