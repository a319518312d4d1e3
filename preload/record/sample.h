/* SPDX-License-Identifier: MIT */
/*
 * sample.h - option `sample`: of all allocations some are recorded, chosen so that every sum stays right on average.
 *
 * Along the bytes a thread allocates there are marks, at distances that follow an exponential distribution with
 * the mean `sample`: a Poisson process. A block with a mark in it is recorded. A block of s bytes has one with
 * the probability p = 1 - exp(-s / sample), so whoever is recorded counts as 1/p blocks and s/p bytes, which makes
 * the expected sums those of all blocks. What a block counts for follows from its size and its address alone, so that
 * its release takes away exactly what its allocation brought. (Horvitz and Thompson's estimator.)
 *
 * Nearly all releases are of blocks that were passed over. They need not look for a record where an array of small
 * counters, one for each 4 KiB of address space (and for those 4 GiB further on), says that none is near: a byte instead
 * of a part of a table, and neighbours in the heap are neighbours there, so it is in the cache. A counter that has
 * reached its end stays there: from then on it only says "perhaps".
 *
 * All in integers: the floating-point state is the program's.
 */
#ifndef LW_RECORD_SAMPLE_H
#define LW_RECORD_SAMPLE_H

#include "preload/base/base.h"
#include "preload/base/early.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/record/blocks.h"

enum { LW_SAMPLE_COUNTER_BITS = 20, LW_SAMPLE_COUNTER_SHIFT = 12 };

extern uint8_t lw_sample_counters[1 << LW_SAMPLE_COUNTER_BITS];

LW_INLINE uint8_t *lw_sample_counter(uintptr_t address)
{
	return &lw_sample_counters[address >> LW_SAMPLE_COUNTER_SHIFT & ((1 << LW_SAMPLE_COUNTER_BITS) - 1)];
}

/* False: no block at this address is recorded. Only while sampling is on. */
LW_INLINE bool lw_sample_may_hold(uintptr_t address)
{
	return lw_load(lw_sample_counter(address));
}

/* A record comes, before the program has the address; and goes. Both do nothing while sampling is off. */
void lw_sample_count_in(uintptr_t address);
void lw_sample_count_out(uintptr_t address);

/* What a block counts for. */
struct lw_weight {
	uint64_t bytes, blocks;
};

/* Of a recorded block, while sampling is on. */
struct lw_weight lw_sample_weigh(uintptr_t address, uint64_t bytes);

/* Draws the distance to the next mark; at a thread's first event makes its dice. False: the block has a mark in it. */
bool lw_sample_next(struct lw_thread *thread, uint64_t bytes);

/* In a forked child: it throws dice of its own, or all children of a server would choose alike. */
LW_INLINE void lw_sample_forget(struct lw_thread *thread)
{
	thread->dice = 0;
	thread->until_sample = 0;
}

/* Has this block no mark in it? Called once for each allocation while sampling is on. */
LW_INLINE bool lw_sample_passes(struct lw_thread *thread, uint64_t bytes)
{
	bytes += !bytes;
	if (LW_UNLIKELY(bytes > thread->until_sample))
		return lw_sample_next(thread, bytes);
	thread->until_sample -= bytes;
	return true;
}

LW_INLINE bool lw_sample_is_on_here(void)
{
	return LW_UNLIKELY(lw_own_thread()->gate == LW_GATE_SAMPLED);
}

/*
 * The same for a hook, before anything is entered: true where the block will be passed over, so that the real
 * function is all there is to do. (Should that fail, the marks have lost nothing: the distance to the next one is
 * the same wherever one begins.)
 */
LW_INLINE bool lw_sample_passes_quickly(uint64_t bytes)
{
	struct lw_thread *thread = lw_own_thread();

	if (LW_LIKELY(thread->gate != LW_GATE_SAMPLED))
		return false;
	bytes += !bytes;
	if (!lw_load(&lw_hot.active) || LW_UNLIKELY(bytes > thread->until_sample))
		return false;
	thread->until_sample -= bytes;
	return true;
}

/* The same for a release: true where this block, which may be none, was passed over for sure. */
LW_INLINE bool lw_sample_passed_quickly(const void *ptr)
{
	return LW_UNLIKELY(lw_own_thread()->gate == LW_GATE_SAMPLED) && lw_load(&lw_hot.active) && !lw_early_owns(ptr) &&
	       !lw_sample_may_hold((uintptr_t)ptr);
}

/* Was this block recorded? Only while sampling is on. */
LW_INLINE bool lw_sample_holds(uintptr_t address)
{
	struct lw_block block;

	return lw_sample_may_hold(address) && lw_blocks_find(address, &block);
}

LW_INLINE struct lw_weight lw_weight_of(uintptr_t address, uint64_t bytes)
{
	return LW_LIKELY(!lw_hot.sample_bytes) ? (struct lw_weight){ bytes, 1 } : lw_sample_weigh(address, bytes);
}

#endif
