/* SPDX-License-Identifier: MIT */
/*
 * memo.h - the validated memory of earlier unwinds: have we stood here before?
 *
 * One table per thread, small at first, larger for a thread that comes by very many stacks. An entry remembers, for a stack, where each of its return addresses lay
 * relative to the stack pointer, and which frame pointers had to be what. If every one of those
 * words still holds the same, a walk would read the same and give the same stack, so its site is
 * the answer, at about a nanosecond a frame: the loads do not depend on each other. Nothing is
 * assumed: a word that differs is a miss, and the walk decides.
 *
 * The expected return addresses are not kept here but compared with the site's own frames, and
 * positions are 16-bit word counts, so an entry for 32 frames takes 256 bytes. The stack pointer is
 * no part of the entry (positions are relative to it), only of its place in the table, so that the
 * levels of a recursion do not throw each other out. Stacks that differ only further out come by
 * the same place, so a place has four entries; without that, four of five misses were theirs. Where
 * many more than four come by, the place is found by some of their return addresses too.
 *
 * Words no rule needs (a saved frame pointer that no outer frame is found by) are no part of it:
 * with them the hit rate on real programs was half. A dlclose makes all entries void (generation).
 */
#ifndef LW_UNWIND_MEMO_H
#define LW_UNWIND_MEMO_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/unwind/unwind.h"

enum {
	LW_MEMO_SET_BITS = 6,	   /* places in the table a thread begins with */
	LW_MEMO_MORE_BITS = 9,	   /* and in the larger one */
	LW_MEMO_LOOK = 8192,	   /* whether it is needed is asked after so many new entries */
	LW_MEMO_WAYS = 4,	   /* entries at each */
	LW_MEMO_CROWD = 16, /* entries thrown out of a place before more is asked of a stack */
	LW_MEMO_STEPS = 2,  /* return addresses that are asked for then */
	LW_MEMO_HALVES = 109,	   /* 16-bit numbers per entry: slots, then links in pairs */
};

struct lw_memo {
	uint64_t pc;		/* of the first frame; 0 empty */
	const uint64_t *pcs;	/* the site's frames */
	uint32_t site;
	uint32_t generation;
	uint64_t key;		/* kind, and hint or what leads to it */
	uint8_t nr;
	uint8_t nr_links;
	uint16_t max_slot;
	uint16_t fp_want;	/* what the frame pointer must be at the start, in words from sp; or LW_LINK_REGISTER */
	uint16_t halves[LW_MEMO_HALVES];
};

_Static_assert(sizeof(struct lw_memo) == 256, "four lines an entry");

/* The table of one thread. */
struct lw_memos {
	uint32_t turn;	/* which entry of a place is given up next; counts the new ones */
	uint32_t bits;	/* log2 of the number of places */
	uint8_t *last;	/* by place: the entry that was right last time, which is tried first | thrown out, times LW_MEMO_WAYS */
	struct lw_memo (*entries)[LW_MEMO_WAYS];
};

/* Room for one of them. Zero is a valid beginning, after lw_memos_init(). */
struct lw_memo_room {
	struct lw_memo entries[1 << LW_MEMO_SET_BITS][LW_MEMO_WAYS] __attribute__((aligned(LW_CACHE_LINE)));
	uint8_t last[1 << LW_MEMO_SET_BITS];
	struct lw_memos memos;
};

struct lw_memo_more_room {
	struct lw_memo entries[1 << LW_MEMO_MORE_BITS][LW_MEMO_WAYS] __attribute__((aligned(LW_CACHE_LINE)));
	uint8_t last[1 << LW_MEMO_MORE_BITS];
	struct lw_memos memos;
};

LW_INLINE struct lw_memos *lw_memos_init(struct lw_memo_room *room)
{
	room->memos = (struct lw_memos){ room->memos.turn, LW_MEMO_SET_BITS, room->last, room->entries };
	return &room->memos;
}

LW_INLINE struct lw_memos *lw_memos_init_more(struct lw_memo_more_room *room)
{
	room->memos = (struct lw_memos){ room->memos.turn, LW_MEMO_MORE_BITS, room->last, room->entries };
	return &room->memos;
}

LW_INLINE const struct lw_memo *lw_memo_at(const struct lw_memos *memos, uint32_t place, uint32_t last)
{
	const struct lw_memo *memo = &memos->entries[place][last % LW_MEMO_WAYS];

	__asm__("" : "+r"(memo)); /* one address: gcc would make it anew from table and place at each use */
	return memo;
}

LW_INLINE uint32_t lw_memo_place(const struct lw_memos *memos, uintptr_t pc, uintptr_t sp)
{
	uint64_t mixed = (pc ^ sp << 13 ^ sp >> 3) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> (64 - memos->bits));
}

/* The place of a stack where too many come by the first one: a hash of that and of the next return addresses. */
uint32_t lw_memo_place_in_crowd(const struct lw_thread *thread, const struct lw_memos *memos, uintptr_t pc, uintptr_t sp);

LW_INLINE bool lw_memo_is_crowded(uint32_t last)
{
	return last >= LW_MEMO_CROWD * LW_MEMO_WAYS;
}

/* Do all links hold: was each frame pointer what the outer frames were found by? */
LW_INLINE bool lw_memo_links_hold(const struct lw_memo *memo, struct lw_frame frame)
{
	const uint16_t *link = memo->halves + memo->nr;

	for (unsigned i = 0; i < memo->nr_links; i++, link += 2) {
		uintptr_t value = link[0] == LW_LINK_REGISTER ? frame.fp
							      : ((const uintptr_t *)frame.sp)[link[0]];

		if (value != frame.sp + 8 * (uintptr_t)link[1])
			return false;
	}
	return true;
}

/* Of four frames: what is not where it was. */
LW_INLINE uint64_t lw_memo_four_differ(const uint16_t *slot, const uint64_t *pc, const uint64_t *words)
{
	return (words[slot[0]] ^ pc[0]) | (words[slot[1]] ^ pc[1]) | (words[slot[2]] ^ pc[2]) | (words[slot[3]] ^ pc[3]);
}

/*
 * Are the return addresses where they were? Four at a time, so that the loads do not wait for a branch each; of the last
 * four some may be looked at a second time.
 */
LW_INLINE bool lw_memo_frames_hold(const struct lw_memo *memo, const uint64_t *words)
{
	const uint16_t *slot = memo->halves + 1, *end = memo->halves + memo->nr;
	const uint64_t *pc = memo->pcs + 1;

	if (LW_UNLIKELY(slot + 4 > end)) {
		for (; slot < end; slot++, pc++) {
			if (words[*slot] != *pc)
				return false;
		}
		return true;
	}
	for (; slot < end - 4; slot += 4, pc += 4) {
		if (lw_memo_four_differ(slot, pc, words))
			return false;
	}
	return !lw_memo_four_differ(end - 4, memo->pcs + memo->nr - 4, words);
}

/* Is this the stack the entry remembers? */
LW_INLINE bool lw_memo_matches(const struct lw_thread *thread, const struct lw_memo *memo, struct lw_frame frame,
		uint64_t key)
{
	return memo->pc == frame.pc && memo->key == key && LW_LIKELY(memo->generation == lw_load(&lw_hot.generation)) &&
	       LW_LIKELY(frame.sp >= thread->stack_lo &&
			       frame.sp + 8 * (uintptr_t)memo->max_slot + 8 <= thread->stack_hi) &&
	       lw_memo_frames_hold(memo, (const uint64_t *)frame.sp) &&
	       (memo->fp_want == LW_LINK_REGISTER || frame.fp == frame.sp + 8 * (uintptr_t)memo->fp_want) &&
	       (LW_LIKELY(!memo->nr_links) || lw_memo_links_hold(memo, frame));
}

/* The site of the stack that begins like this, or 0: walk it. A function of its own: it wants all registers. */
uint32_t lw_memo_find_at(struct lw_thread *thread, uintptr_t pc, uintptr_t sp, uintptr_t fp, uint64_t key);

LW_INLINE uint32_t lw_memo_find(struct lw_thread *thread, const struct lw_frame *frame, uint64_t key)
{
	return lw_memo_find_at(thread, frame->pc, frame->sp, frame->fp, key);
}

/* Remembers what a walk found; does nothing for one that cannot be remembered. */
void lw_memo_keep(const struct lw_thread *thread, const struct lw_frame *frame, const struct lw_stack *stack,
		const uint64_t *pcs, uint32_t site, uint64_t key, uint32_t generation);

#endif
