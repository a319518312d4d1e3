/* SPDX-License-Identifier: MIT */
/*
 * early.c - the bootstrap arena, a lock-free stack of blocks that mostly only grows.
 *
 * A block is a head of 16 bytes and the caller's memory behind it. `used_bytes` is the only shared
 * word: reserving moves it up by compare-and-swap, and not by a plain atomic add, because a refused
 * huge request must not take the room of the small ones that follow. Freeing moves it down again
 * when the block is the last, so a program that allocates and frees in turn while it is brought up
 * never fills the arena. Memory given back is dirty, so calloc always clears.
 *
 * free and realloc are handed pointers by the target, so a head is checked before it is believed.
 */
#include "preload/base/early.h"

#include <errno.h>
#include <string.h>

/* Offsets are from the start of the arena, which is aligned to the largest alignment. */
struct head {
	uint32_t start; /* where the reservation began: at or before the head */
	uint32_t end;	/* where it ends, and the caller's memory with it */
	uint64_t unused;
};

_Static_assert(sizeof(struct head) == LW_EARLY_ALIGN, "the caller's memory follows, aligned");
_Static_assert(LW_EARLY_BYTES % LW_EARLY_MAX_ALIGN == 0, "rounding up never passes the end");

char lw_early_arena[LW_EARLY_BYTES] LW_ROOM __attribute__((aligned(LW_EARLY_MAX_ALIGN)));

static uint32_t used_bytes; /* written by compare-and-swap; blocks are published by their callers */
static uint64_t nr_refused; /* any thread, atomic add */

static void *refuse(void)
{
	lw_add(&nr_refused, 1);
	errno = ENOMEM;
	return NULL;
}

void *lw_early_memalign(size_t align, size_t bytes)
{
	uint32_t start = lw_load(&used_bytes), at, end;
	struct head *head;

	if (align < LW_EARLY_ALIGN)
		align = LW_EARLY_ALIGN;
	if (align > LW_EARLY_MAX_ALIGN || align & (align - 1) || bytes > LW_EARLY_BYTES)
		return refuse();
	do {
		at = LW_ALIGN_UP(start + (uint32_t)sizeof(*head), (uint32_t)align);
		/* a block of no bytes has an address of its own too */
		end = at + LW_ALIGN_UP(bytes ? (uint32_t)bytes : 1, (uint32_t)LW_EARLY_ALIGN);
		if (end > LW_EARLY_BYTES)
			return refuse();
	} while (!__atomic_compare_exchange_n(
		&used_bytes, &start, end, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	head = (struct head *)(lw_early_arena + at) - 1;
	head->start = start;
	head->end = end;
	return lw_early_arena + at;
}

void *lw_early_malloc(size_t bytes)
{
	return lw_early_memalign(LW_EARLY_ALIGN, bytes);
}

void *lw_early_calloc(size_t nr, size_t bytes)
{
	size_t all_bytes;
	void *ptr;

	if (__builtin_mul_overflow(nr, bytes, &all_bytes))
		return refuse();
	ptr = lw_early_malloc(all_bytes);
	if (ptr)
		memset(ptr, 0, all_bytes);
	return ptr;
}

/* The head of a block, or NULL if ptr was never handed out from here. */
static const struct head *head_of(const void *ptr)
{
	size_t at = (uintptr_t)ptr - (uintptr_t)lw_early_arena;
	const struct head *head;

	if (at < sizeof(*head) || at >= LW_EARLY_BYTES || at % LW_EARLY_ALIGN)
		return NULL;
	head = (const struct head *)ptr - 1;
	if (head->start > at - sizeof(*head) || head->end <= at || head->end > LW_EARLY_BYTES)
		return NULL;
	return head;
}

size_t lw_early_usable_size(const void *ptr)
{
	const struct head *head = head_of(ptr);

	return head ? head->end - ((uintptr_t)ptr - (uintptr_t)lw_early_arena) : 0;
}

void lw_early_free(void *ptr)
{
	const struct head *head = head_of(ptr);
	uint32_t end, start;

	if (!head)
		return;
	start = head->start;
	end = head->end;
	__atomic_compare_exchange_n(
		&used_bytes, &end, start, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void *lw_early_realloc(void *ptr, size_t bytes)
{
	size_t old_bytes = lw_early_usable_size(ptr);
	void *moved;

	if (ptr && !bytes) {
		lw_early_free(ptr);
		return NULL;
	}
	if (ptr && bytes <= old_bytes)
		return ptr;
	moved = lw_early_malloc(bytes);
	if (!moved)
		return NULL;
	if (ptr) {
		memcpy(moved, ptr, old_bytes);
		lw_early_free(ptr);
	}
	return moved;
}

size_t lw_early_used_bytes(void)
{
	return lw_load(&used_bytes);
}

uint64_t lw_early_nr_refused(void)
{
	return lw_load(&nr_refused);
}
