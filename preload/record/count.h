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

LW_INLINE struct lw_count *lw_count_at(struct lw_thread *thread, uint32_t site)
{
	uint32_t chunk = lw_load(&thread->dir[site / LW_CHUNK_SITES]);
	struct lw_count *counts = (struct lw_count *)(lw_hot.chunks +
			(size_t)chunk * LW_CHUNK_SITES * sizeof(struct lw_count));

	return LW_LIKELY(chunk) ? counts + site % LW_CHUNK_SITES : lw_threads_add_chunk(thread, site);
}

LW_INLINE void lw_count_add(struct lw_thread *thread, uint64_t *counter, uint64_t amount)
{
	if (LW_LIKELY(thread->row))
		lw_bump(counter, amount);
	else
		lw_add(counter, amount);
}

LW_INLINE void lw_count_alloc_more(struct lw_thread *thread, uint32_t site, uint64_t bytes,
		uint64_t blocks)
{
	struct lw_count *count = lw_count_at(thread, site);

	if (LW_LIKELY(count)) {
		lw_count_add(thread, &count->alloc_bytes, bytes);
		lw_count_add(thread, &count->alloc_blocks, blocks);
	}
}

LW_INLINE void lw_count_alloc(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	lw_count_alloc_more(thread, site, bytes, blocks);
	thread->live_bytes += (int64_t)bytes;
	if (thread->live_bytes > thread->live_max)
		thread->live_max = thread->live_bytes;
	if (LW_UNLIKELY(thread->live_bytes > LW_BALANCE_BYTES))
		lw_count_flush(thread);
}

LW_INLINE void lw_count_free(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	struct lw_count *count = lw_count_at(thread, site);

	if (LW_LIKELY(count)) {
		lw_count_add(thread, &count->freed_bytes, bytes);
		lw_count_add(thread, &count->freed_blocks, blocks);
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
