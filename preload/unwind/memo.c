/* SPDX-License-Identifier: MIT */
/* memo.c - writing an entry; see memo.h. */
#include "preload/unwind/memo.h"

#include <string.h>

#include "preload/unwind/rules.h"
#include "preload/unwind/trail.h"

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

uint32_t lw_memo_place_in_crowd(const struct lw_thread *thread, const struct lw_memos *memos, uintptr_t pc, uintptr_t sp)
{
	uint64_t hash = pc ^ sp << 13 ^ sp >> 3;

	for (int i = 0; i < LW_MEMO_STEPS && sp >= thread->stack_lo; i++) {
		uint32_t rule = lw_rules_find(pc);

		sp += 8 * (uintptr_t)lw_rule_cfa(rule);
		if (!lw_trail_can_follow(rule) || sp > thread->stack_hi || sp & 7)
			break;
		pc = ((const uintptr_t *)sp)[-1];
		hash = (hash ^ pc) * UINT64_C(0xbf58476d1ce4e5b9);
		hash ^= hash >> 32;
	}
	return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - memos->bits));
}

/* In the other entries of a place. */
static LW_HOT uint32_t find_elsewhere(struct lw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp, uint64_t key,
		uint32_t place)
{
	struct lw_memos *memos = thread->memos;
	uint32_t last = memos->last[place];

	for (uint32_t i = 1; i < LW_MEMO_WAYS; i++) {
		uint32_t way = (last + i) % LW_MEMO_WAYS;
		const struct lw_memo *memo = lw_memo_at(memos, place, way);

		if (!lw_memo_matches(thread, memo, (struct lw_frame){ pc, sp, fp }, key))
			continue;
		memos->last[place] = (uint8_t)(last / LW_MEMO_WAYS * LW_MEMO_WAYS + way);
		return memo->site;
	}
	return 0;
}

static LW_HOT uint32_t find_in_crowd(struct lw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp, uint64_t key)
{
	const struct lw_memos *memos = thread->memos;
	uint32_t place = lw_memo_place_in_crowd(thread, memos, pc, sp);
	const struct lw_memo *memo = lw_memo_at(memos, place, memos->last[place]);

	return lw_memo_matches(thread, memo, (struct lw_frame){ pc, sp, fp }, key) ?
			       memo->site : find_elsewhere(thread, pc, sp, fp, key, place);
}

LW_HOT uint32_t lw_memo_find_at(struct lw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp, uint64_t key)
{
	const struct lw_memos *memos = thread->memos;
	uint32_t place = lw_memo_place(memos, pc, sp), last = memos->last[place];
	const struct lw_memo *memo;

	if (LW_UNLIKELY(lw_memo_is_crowded(last)))
		return find_in_crowd(thread, pc, sp, fp, key);
	memo = lw_memo_at(memos, place, last);
	return LW_LIKELY(lw_memo_matches(thread, memo, (struct lw_frame){ pc, sp, fp }, key)) ?
			       memo->site : find_elsewhere(thread, pc, sp, fp, key, place);
}

/* Where to write; counts who has to go for it, with the place's own pc, until they are a crowd. */
static uint32_t place_for(const struct lw_thread *thread, struct lw_memos *memos, const struct lw_frame *frame, uint32_t *way)
{
	uint32_t place = lw_memo_place(memos, frame->pc, frame->sp), last = memos->last[place];

	*way = memos->turn++ % LW_MEMO_WAYS;
	if (lw_memo_is_crowded(last))
		return lw_memo_place_in_crowd(thread, memos, frame->pc, frame->sp);
	if (memos->entries[place][*way].pc == frame->pc && last < UINT8_MAX - LW_MEMO_WAYS)
		memos->last[place] = (uint8_t)(last + LW_MEMO_WAYS);
	return place;
}

void lw_memo_keep(const struct lw_thread *thread, const struct lw_frame *frame, const struct lw_stack *stack,
		const uint64_t *pcs, uint32_t site, uint64_t key, uint32_t generation)
{
	struct lw_memos *memos = thread->memos;
	const struct lw_link *links = stack->links;
	struct lw_memo *memo;
	uint32_t place, way;

	if (!stack->is_repeatable || !site || stack->nr + 2 * stack->nr_links > LW_MEMO_HALVES)
		return;
	place = place_for(thread, memos, frame, &way);
	memo = &memos->entries[place][way];
	memos->last[place] = (uint8_t)(memos->last[place] / LW_MEMO_WAYS * LW_MEMO_WAYS + way);
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
