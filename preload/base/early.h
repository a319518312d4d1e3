/* SPDX-License-Identifier: MIT */
/*
 * early.h - the bootstrap arena: memory for allocations made before the real allocator is known.
 *
 * The loader and dlsym() may allocate while the next allocator is being looked up, and code in
 * .preinit_array allocates before any constructor. They are served from here: a fixed piece of
 * zeroed memory that costs nothing until it is touched. Its pointers live as long as the process,
 * so every hook that is handed a pointer asks lw_early_owns() first, for ever.
 *
 * Any thread may call anything here, at any time, in a signal handler too; no locks, no system
 * calls. When the arena is full the answer is NULL with errno ENOMEM, and the refusal is counted.
 */
#ifndef LW_BASE_EARLY_H
#define LW_BASE_EARLY_H

#include "preload/base/base.h"

enum {
	LW_EARLY_BYTES = 256 << 10,
	LW_EARLY_ALIGN = 16, /* what malloc promises on 64-bit machines */
	LW_EARLY_MAX_ALIGN = 4096,
};

extern char lw_early_arena[LW_EARLY_BYTES];

LW_INLINE bool lw_early_owns(const void *ptr)
{
	return LW_UNLIKELY((uintptr_t)ptr - (uintptr_t)lw_early_arena < LW_EARLY_BYTES);
}

void *lw_early_malloc(size_t bytes);
void *lw_early_calloc(size_t nr, size_t bytes);
/* align: a power of two, up to LW_EARLY_MAX_ALIGN; else NULL. */
void *lw_early_memalign(size_t align, size_t bytes);

/*
 * ptr: NULL or a block of this arena. 0 bytes frees it and gives NULL, as glibc does. A hook that
 * already knows the real allocator moves the block there instead, copying lw_early_usable_size().
 */
void *lw_early_realloc(void *ptr, size_t bytes);

/* Gives the block's memory back if it is the last one; else it stays used. */
void lw_early_free(void *ptr);
size_t lw_early_usable_size(const void *ptr);

/* Bytes in use, and requests refused since the start. */
size_t lw_early_used_bytes(void);
uint64_t lw_early_nr_refused(void);

#endif
