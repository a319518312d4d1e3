/* SPDX-License-Identifier: MIT */
/* memo.c - writing an entry; see memo.h. */
#include "preload/unwind/memo.h"

#include <string.h>

/* Slots rise in a stack that can be repeated. */
static uint16_t highest_slot(const struct lw_stack *stack)
{
	uint16_t highest = stack->nr > 1 ? stack->slots[stack->nr - 1] : 0;

	for (uint32_t i = 0; i < stack->nr_links; i++) {
		if (stack->links[i].slot != LW_LINK_REGISTER && stack->links[i].slot > highest)
			highest = stack->links[i].slot;
	}
	return highest;
}

void lw_memo_keep(struct lw_memos *memos, const struct lw_frame *frame, const struct lw_stack *stack,
		const uint64_t *pcs, uint32_t site, uint64_t key, uint32_t generation)
{
	uint32_t place = lw_memo_place(memos, frame), way = memos->turn++ % LW_MEMO_WAYS;
	struct lw_memo *memo = &memos->entries[place][way];
	const struct lw_link *links = stack->links;

	if (!stack->is_repeatable || !site || stack->nr + 2 * stack->nr_links > LW_MEMO_HALVES)
		return;
	memos->last[place] = (uint8_t)way;
	memo->pc = frame->pc;
	memo->pcs = pcs;
	memo->site = site;
	memo->generation = generation;
	memo->key = key;
	memo->nr = (uint8_t)stack->nr;
	memo->fp_want = LW_LINK_REGISTER;
	if (stack->nr_links && stack->links[0].slot == LW_LINK_REGISTER && stack->links[0].want != LW_LINK_REGISTER) { /* the most common link, looked at by itself */
		memo->fp_want = stack->links[0].want;
		links++;
	}
	memo->nr_links = (uint8_t)(stack->links + stack->nr_links - links);
	memo->max_slot = highest_slot(stack);
	memcpy(memo->halves, stack->slots, stack->nr * sizeof(stack->slots[0]));
	memcpy(memo->halves + stack->nr, links, memo->nr_links * sizeof(links[0]));
}
