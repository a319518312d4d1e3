/* SPDX-License-Identifier: MIT */
/* count.c - the slower ways of counting, and the running total of live bytes and its peak; see count.h. */
#include "preload/record/count.h"

#include "preload/record/track.h"
#include "preload/share/box.h"

static struct lw_count *find(struct lw_thread *thread, uint32_t site)
{
	size_t chunk = lw_load(&thread->dir[site / LW_CHUNK_SITES]);

	return chunk ? (struct lw_count *)(lw_hot.chunks + chunk * LW_CHUNK_SITES * sizeof(struct lw_count)) +
					site % LW_CHUNK_SITES :
			       lw_threads_add_chunk(thread, site);
}

static void add(const struct lw_thread *thread, uint64_t *counter, uint64_t amount)
{
	if (thread->row)
		lw_bump(counter, amount);
	else
		lw_add(counter, amount);
}

LW_NOINLINE void lw_count_alloc_slowly(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	struct lw_count *count = find(thread, site);

	if (count) {
		add(thread, &count->alloc_bytes, bytes);
		add(thread, &count->alloc_blocks, blocks);
	}
}

LW_NOINLINE void lw_count_free_slowly(struct lw_thread *thread, uint32_t site, uint64_t bytes, uint64_t blocks)
{
	struct lw_count *count = find(thread, site);

	if (count) {
		add(thread, &count->freed_bytes, bytes);
		add(thread, &count->freed_blocks, blocks);
	}
}

LW_COLD void lw_count_flush(struct lw_thread *thread)
{
	int64_t before = __atomic_fetch_add(&lw_box->live_bytes, thread->live_bytes, __ATOMIC_RELAXED);
	int64_t highest = before + thread->live_max, peak = lw_load(&lw_box->peak_bytes);

	while (highest > peak && !__atomic_compare_exchange_n(&lw_box->peak_bytes, &peak, highest, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	thread->live_bytes = 0;
	thread->live_max = 0;
	lw_now_and_then();
}
