/* SPDX-License-Identifier: MIT */
/*
 * unwind.h - one stack: from the caller of a hook outward, as return addresses.
 *
 * lw_unwind_walk() follows packed rules; where one says LW_RULE_SLOW the whole stack is done by the
 * full evaluator instead. Besides the PCs it notes which stack words it read, relative to the stack
 * pointer, so that a memo can later tell in a nanosecond a frame whether a walk would read the same
 * (memo.h). The stack ends, and nothing crashes, where there is no unwind information, where memory
 * is not readable, and where the stack pointer does not rise.
 */
#ifndef LW_UNWIND_UNWIND_H
#define LW_UNWIND_UNWIND_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/share/region.h"

/* Where a stack starts: the caller of a hook. */
struct lw_frame {
	uintptr_t pc, sp, fp;
};

/* The same as it lies on the stack, while the hook runs: what the hook's frame pointer points to. */
struct lw_call {
	uintptr_t fp, pc;
};

LW_INLINE struct lw_frame lw_frame_of(const struct lw_call *call)
{
	return (struct lw_frame){ .pc = call->pc, .sp = (uintptr_t)(call + 1), .fp = call->fp };
}

/* The frame pointer that outer frames were found with had to be this: the word at slot (0xffff: the
 * register itself) held the address sp + 8 * want. */
struct lw_link {
	uint16_t slot, want;
};

enum { LW_LINK_REGISTER = 0xffff, LW_MAX_LINKS = LW_MAX_FRAMES };

struct lw_stack {
	uint32_t nr;
	bool is_truncated;	/* more frames than asked for */
	bool is_repeatable;	/* slots and links say all that the walk depended on */
	bool is_slow;		/* the full evaluator was needed */
	uint32_t nr_links;
	uint64_t pcs[LW_MAX_FRAMES];	/* return addresses; one more than the pc where a signal came in */
	uint16_t slots[LW_MAX_FRAMES];	/* pcs[i], i > 0, was read at sp + 8 * slots[i] */
	struct lw_link links[LW_MAX_LINKS];
	uint16_t modules[LW_MAX_FRAMES]; /* filled when the stack is interned */
};

/* Fills *stack with at most max_frames frames, the first being frame->pc. */
void lw_unwind_walk(struct lw_thread *thread, const struct lw_frame *frame, uint32_t max_frames,
		struct lw_stack *stack);

#endif
