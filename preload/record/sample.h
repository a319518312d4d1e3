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
 * All in integers: the floating-point state is the program's.
 */
#ifndef LW_RECORD_SAMPLE_H
#define LW_RECORD_SAMPLE_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"

/* What a block counts for. */
struct lw_weight {
	uint64_t bytes, blocks;
};

/* Of a recorded block, while sampling is on. */
struct lw_weight lw_sample_weigh(uintptr_t address, uint64_t bytes);

/* Draws the distance to the next mark; at a thread's first event makes its dice. False: the block has a mark in it. */
bool lw_sample_next(struct lw_thread *thread, uint64_t bytes);

/* Has this block no mark in it? Called once for each allocation while sampling is on. */
LW_INLINE bool lw_sample_passes(struct lw_thread *thread, uint64_t bytes)
{
	bytes += !bytes;
	if (LW_UNLIKELY(bytes > thread->until_sample))
		return lw_sample_next(thread, bytes);
	thread->until_sample -= bytes;
	return true;
}

LW_INLINE struct lw_weight lw_weight_of(uintptr_t address, uint64_t bytes)
{
	return LW_LIKELY(!lw_hot.sample_bytes) ? (struct lw_weight){ bytes, 1 } : lw_sample_weigh(address, bytes);
}

#endif
