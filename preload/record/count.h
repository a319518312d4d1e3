/* SPDX-License-Identifier: MIT */
/*
 * count.h - adding to the counters of a site: plain stores by the row's only writer.
 *
 * Row 0 has many writers and takes atomic adds. The highest sum of live bytes is found from each thread's own
 * running balance: exact while one thread runs, else flushed to the region every 64 KiB of change.
 */
#ifndef LW_RECORD_COUNT_H
#define LW_RECORD_COUNT_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/record/threads.h"
#include "preload/share/region.h"

enum { LW_BALANCE_BYTES = 64 << 10 };

/* Carries the thread's balance over to the region's total and peak. */
void lw_count_flush(struct lw_thread *thread);

/* Where a thread has no row of its own, or no counters for the site yet. Amounts may be negative. */
void lw_count_alloc_slowly(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks);
void lw_count_free_slowly(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks);

/* The counters of a site in the thread's own row; NULL: the slow way. */
LW_INLINE struct lw_count *lw_count_at(const struct lw_thread *thread, uint32_t site)
{
	size_t chunk = lw_load(&thread->dir[site / LW_CHUNK_SITES]);

	return LW_LIKELY(chunk) && LW_LIKELY(thread->row) ?
			       (struct lw_count *)(lw_hot.chunks + chunk * LW_CHUNK_SITES * sizeof(struct lw_count)) +
					       site % LW_CHUNK_SITES :
			       NULL;
}

LW_INLINE void lw_count_alloc_more(struct lw_thread *thread, uint32_t site, uint64_t bytes,
		uint64_t blocks)
{
	struct lw_count *count = lw_count_at(thread, site);

	if (LW_LIKELY(count)) {
		lw_bump(&count->alloc_bytes, bytes);
		lw_bump(&count->alloc_blocks, blocks);
	} else {
		lw_count_alloc_slowly(thread, site, bytes, blocks);
	}
}

/* Into the running balance. */
LW_INLINE void lw_count_live(struct lw_thread *thread, uint64_t bytes)
{
	thread->live_bytes += (int64_t)bytes;
	if (thread->live_bytes > thread->live_max) {
		thread->live_max = thread->live_bytes; /* 0 after a flush, so only here it can be too much */
		if (LW_UNLIKELY(thread->live_bytes > LW_BALANCE_BYTES))
			lw_count_flush(thread);
	}
}

LW_INLINE void lw_count_alloc(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	lw_count_alloc_more(thread, site, bytes, blocks);
	lw_count_live(thread, bytes);
}

LW_INLINE void lw_count_free(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	struct lw_count *count = lw_count_at(thread, site);

	if (LW_LIKELY(count)) {
		lw_bump(&count->freed_bytes, bytes);
		lw_bump(&count->freed_blocks, blocks);
	} else {
		lw_count_free_slowly(thread, site, bytes, blocks);
	}
	thread->live_bytes -= (int64_t)bytes;
	if (LW_UNLIKELY(thread->live_bytes < -LW_BALANCE_BYTES))
		lw_count_flush(thread);
}

/* Takes an allocation back, as if it had not been: an outer hook counts it instead. */
LW_INLINE void lw_count_alloc_undo(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	lw_count_alloc_more(thread, site, -bytes, -blocks);
	thread->live_bytes -= (int64_t)bytes;
}

#endif
