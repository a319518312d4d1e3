/* SPDX-License-Identifier: MIT */
/*
 * trail.h - the frames of a thread's last walk, with their rules.
 *
 * Two stacks that are taken one after the other mostly have their outer frames in common. The frames
 * of the last walk therefore lie ready in order: where the next one meets a return address that it
 * met last time too, it takes the rule from here. That spares the look-up in the table, and, what
 * matters more, the waiting: the rule's address does not depend on the return address just read, so
 * the processor runs ahead along the trail while it still loads the words of the stack.
 *
 * Nothing is assumed: every return address is read from the stack, and a rule depends on its return
 * address alone. The stack pointers only say where in the trail to look; their lower halves will do.
 * Frames further out than a walk went stay for later ones. Only frames that are new are written, in
 * place of those that are gone: a copy of the whole trail at each walk cost the program more in
 * cache misses than the walk had saved.
 */
#ifndef LW_UNWIND_TRAIL_H
#define LW_UNWIND_TRAIL_H

#include "preload/base/base.h"
#include "preload/unwind/cfi.h"
#include "preload/unwind/unwind.h"

enum { LW_TRAIL_STEPS = LW_MAX_FRAMES + 64 };

/*
 * Never a pc, nor the complement of one: the rule of this frame has to be looked up. A word on a stack may well be it
 * (Fibonacci hashing), so that whoever finds it alike looks at cfa, too, which is 0.
 */
#define LW_TRAIL_NO_PC UINT64_C(0x9e3779b97f4a7c15)

struct lw_trail_step {
	uint64_t pc;	/* its complement: the stack ends here, by rule */
	uint32_t sp;	/* lower half, rising; all ones: the end of the trail */
	uint16_t cfa;	/* words from sp to the next frame's; 0 where it cannot be followed, as at the end */
	uint16_t fp;	/* words from there down to the saved frame pointer; 0 none */
};

/* All zero is a valid beginning. */
struct lw_trail {
	uint32_t nr;	     /* the last ones of `steps` are in use, outermost last */
	uint32_t generation; /* of lw_hot: rules may be void when it has risen */
	struct lw_trail_step fresh[LW_MAX_FRAMES]; /* met in this walk, not in their place yet */
	struct lw_trail_step steps[LW_TRAIL_STEPS + 1];
};

/* A walk along a trail. */
struct lw_trail_walk {
	struct lw_trail_step *at;    /* the next step of the walk before */
	struct lw_trail_step *from;  /* what lies between this and `at` goes: the fresh ones come there */
	struct lw_trail_step *first; /* the innermost */
	uint32_t nr_fresh;
};

/* Does the rule need the stack pointer alone, and lead outward? */
LW_INLINE bool lw_trail_can_follow(uint32_t rule)
{
	return lw_rule_type(rule) == LW_RULE_SP && lw_rule_cfa(rule);
}

LW_INLINE struct lw_trail_step lw_trail_step(uintptr_t pc, uintptr_t sp, uint32_t rule)
{
	bool is_last = lw_rule_type(rule) == LW_RULE_END && !(pc >> 47);
	uint64_t known = lw_trail_can_follow(rule) ? pc : is_last ? ~pc : LW_TRAIL_NO_PC;
	uint32_t cfa = lw_trail_can_follow(rule) ? lw_rule_cfa(rule) : 0;

	return (struct lw_trail_step){ known, (uint32_t)sp, (uint16_t)cfa, (uint16_t)lw_rule_fp(rule) };
}

LW_INLINE struct lw_trail_walk lw_trail_begin(struct lw_trail *trail, uint32_t generation)
{
	struct lw_trail_step *end = trail->steps + LW_TRAIL_STEPS, *first;

	if (LW_UNLIKELY(!trail->nr || trail->generation != generation)) {
		trail->nr = 0;
		trail->generation = generation;
		*end = (struct lw_trail_step){ .pc = LW_TRAIL_NO_PC, .sp = UINT32_MAX };
	}
	first = end - trail->nr;
	return (struct lw_trail_walk){ first, first, first, 0 };
}

/* To the place of a frame with this stack pointer. */
LW_INLINE void lw_trail_seek(struct lw_trail_walk *walk, uintptr_t sp)
{
	while (walk->at->sp < (uint32_t)sp)
		walk->at++;
}

/* Puts the fresh steps in place of those passed over. No room: the trail begins anew at the next walk. */
void lw_trail_splice(struct lw_trail *trail, struct lw_trail_walk *walk);

LW_INLINE void lw_trail_end(struct lw_trail *trail, struct lw_trail_walk *walk, uintptr_t sp, bool is_kept)
{
	if (walk->nr_fresh) {
		lw_trail_seek(walk, sp + 1); /* the frame that was there is another now */
		lw_trail_splice(trail, walk);
	}
	trail->nr = is_kept ? (uint32_t)(trail->steps + LW_TRAIL_STEPS - walk->first) : 0;
}

#endif
