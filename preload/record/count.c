/* SPDX-License-Identifier: MIT */
/* count.c - the running total of live bytes and its peak; see count.h. */
#include "preload/record/count.h"

#include "preload/record/track.h"
#include "preload/share/box.h"

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
