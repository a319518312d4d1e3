/* SPDX-License-Identifier: MIT */
/* sites.c - the pairs of sites.cc that are C, where the macros are C's. */
#include "preload/leakwatch.h"

void c_plain(int nr);
void c_sites(int nr);

static void *hide(void *ptr)
{
	__asm__ volatile("" : "+r"(ptr) : : "memory");
	return ptr;
}

void c_plain(int nr)
{
	for (int i = 0; i < nr; i++) {
		void *ptr = hide((malloc)(40));

		(free)(ptr);
	}
}

void c_sites(int nr)
{
	for (int i = 0; i < nr; i++) {
		void *ptr = hide(malloc(40));

		free(ptr);
	}
}
