/* SPDX-License-Identifier: MIT */
/*
 * victim-traces.cc - how many copies of a new block's address a call leaves on the stack below its caller, where
 * later frames may keep them. usage: victim-traces. One line each: NAME of BYTES COPIES, from the same places first and again.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <new>

#include "victim.h"

enum { DEPTH_BYTES = 16384, ROUNDS = 40 };

/* Records of small and of large blocks are kept in two ways, and of very large ones in a third. */
static const size_t sizes[] = { 200, 3000, 50000, 300000 };
static size_t bytes;

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

FRAME static uintptr_t by_malloc() { return disguise(malloc(bytes)); }
FRAME static uintptr_t by_calloc() { return disguise(calloc(1, bytes)); }
FRAME static uintptr_t by_realloc() { return disguise(realloc(nullptr, bytes)); }
FRAME static uintptr_t by_resizing()
{
	return disguise(realloc(reinterpret_cast<void *>(~disguise(malloc(bytes))), bytes + 8)); /* it stays where it is */
}
FRAME static uintptr_t by_aligned_alloc() { return disguise(aligned_alloc(16, bytes)); }
FRAME static uintptr_t by_memalign() { return disguise(memalign(16, bytes)); }
FRAME static uintptr_t by_new() { return disguise(operator new(bytes)); }
FRAME static uintptr_t by_new_array() { return disguise(operator new[](bytes)); }
FRAME static uintptr_t by_new_aligned() { return disguise(operator new(bytes, std::align_val_t(64))); }

static const struct {
	const char *name;
	uintptr_t (*make)();
} calls[] = { { "malloc", by_malloc }, { "calloc", by_calloc }, { "realloc", by_realloc },
	      { "aligned_alloc", by_aligned_alloc }, { "memalign", by_memalign }, { "new", by_new },
	      { "new[]", by_new_array }, { "aligned new", by_new_aligned },
	      { "realloc in place", by_resizing } };

int main()
{
	unsigned nr[sizeof(sizes) / sizeof(sizes[0])][sizeof(calls) / sizeof(calls[0])] = {};
	size_t size = 0;

	for (; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		size_t at = 0;

		bytes = sizes[size];
		for (const auto &call : calls) {
			for (int round = 0; round < ROUNDS; round++) {
				clear_below();
				nr[size][at] += count_below(call.make());
			}
			at++;
		}
	}
	for (size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		for (size_t at = 0; at < sizeof(calls) / sizeof(calls[0]); at++)
			printf("%s of %zu, %u\n", calls[at].name, sizes[size], nr[size][at]);
	}
	return 0;
}
