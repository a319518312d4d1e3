/* SPDX-License-Identifier: MIT */
/* capture.c - from the caller of a hook to a site; see capture.h. */
#include "preload/record/capture.h"

#include "preload/base/hot.h"
#include "preload/record/sites.h"
#include "preload/record/threads.h"
#include "preload/share/box.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/stack.h"

static void keep(struct lw_thread *thread, const struct lw_frame *frame, const struct lw_stack *stack,
		const struct lw_site_found *site, uint64_t key, uint32_t generation)
{
	lw_memo_keep(thread, frame, stack, site->pcs, site->id, key, generation);
	if (LW_UNLIKELY(thread->memos->turn % LW_MEMO_LOOK == 0))
		lw_threads_more_memos(thread);
}

LW_COLD uint32_t lw_capture(struct lw_thread *thread, const struct lw_frame *frame, uint32_t key,
		uint64_t memo_key)
{
	struct lw_stack *stack = &thread->scratch->stack;
	uint32_t generation = lw_load_acquire(&lw_hot.generation);
	struct lw_site_found site;

	lw_stack_refresh(thread);
	lw_unwind_walk(thread, frame, lw_hot.depth, stack);
	site = lw_sites_intern(stack, key);
	lw_bump(&lw_box->nr_captures, 1); /* of several threads: about */
	if (stack->is_slow)
		lw_bump(&lw_box->nr_slow_captures, 1);
	if (site.id && memo_key && !lw_load(&lw_hot.unloading))
		keep(thread, frame, stack, &site, memo_key, generation);
	return site.id;
}
