/* SPDX-License-Identifier: MIT */
/*
 * victim-traces.cc - how many copies of a new block's address a call leaves on the stack below its caller, where
 * later frames may keep them. usage: victim-traces. One line each: NAME COPIES, from the same places first and again.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <new>

#include "victim.h"

enum { DEPTH_BYTES = 16384, BYTES = 200, ROUNDS = 40 };

FRAME static void clear_below()
{
	volatile char room[DEPTH_BYTES];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

/* The stack below this function's frame is read as it is. */
FRAME static unsigned count_below(uintptr_t complement)
{
	uintptr_t sp;
	unsigned nr = 0;

	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	for (uintptr_t at = sp - DEPTH_BYTES + 1024; at < sp; at += 8)
		nr += *(const volatile uintptr_t *)at == ~complement;
	return nr;
}

static uintptr_t disguise(void *ptr)
{
	return ~reinterpret_cast<uintptr_t>(hold(ptr));
}

FRAME static uintptr_t by_malloc() { return disguise(malloc(BYTES)); }
FRAME static uintptr_t by_calloc() { return disguise(calloc(1, BYTES)); }
FRAME static uintptr_t by_realloc() { return disguise(realloc(nullptr, BYTES)); }
FRAME static uintptr_t by_resizing()
{
	return disguise(realloc(reinterpret_cast<void *>(~disguise(malloc(BYTES))), BYTES + 8)); /* it stays where it is */
}
FRAME static uintptr_t by_aligned_alloc() { return disguise(aligned_alloc(16, BYTES)); }
FRAME static uintptr_t by_memalign() { return disguise(memalign(16, BYTES)); }
FRAME static uintptr_t by_new() { return disguise(operator new(BYTES)); }
FRAME static uintptr_t by_new_array() { return disguise(operator new[](BYTES)); }
FRAME static uintptr_t by_new_aligned() { return disguise(operator new(BYTES, std::align_val_t(64))); }

static const struct {
	const char *name;
	uintptr_t (*make)();
} calls[] = { { "malloc", by_malloc }, { "calloc", by_calloc }, { "realloc", by_realloc },
	      { "aligned_alloc", by_aligned_alloc }, { "memalign", by_memalign }, { "new", by_new },
	      { "new[]", by_new_array }, { "aligned new", by_new_aligned },
	      { "realloc in place", by_resizing } };

int main()
{
	unsigned nr[sizeof(calls) / sizeof(calls[0])] = {};
	size_t at = 0;

	for (const auto &call : calls) {
		for (int round = 0; round < ROUNDS; round++) {
			clear_below();
			nr[at] += count_below(call.make());
		}
		at++;
	}
	at = 0;
	for (const auto &call : calls)
		printf("%s %u\n", call.name, nr[at++]);
	return 0;
}
