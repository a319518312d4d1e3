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
 * Frames further out than a walk went stay for later ones, as far as there is room.
 */
#ifndef LW_UNWIND_TRAIL_H
#define LW_UNWIND_TRAIL_H

#include <string.h>

#include "preload/base/base.h"
#include "preload/base/hot.h"
#include "preload/unwind/cfi.h"
#include "preload/unwind/unwind.h"

enum { LW_TRAIL_STEPS = LW_MAX_FRAMES + 64 };

struct lw_trail_step {
	uint64_t pc;	/* 0: not to be followed by its rule */
	uint32_t sp;	/* lower half, rising; all ones: the end */
	uint32_t rule;
};

struct lw_trail {
	uint32_t nr;	     /* without the one that marks the end */
	uint32_t generation; /* of lw_hot: rules may be void when it has risen */
	struct lw_trail_step steps[LW_TRAIL_STEPS + 1];
};

/* One is read while the other is written. All zero is a valid beginning. */
struct lw_trails {
	uint32_t turn;
	struct lw_trail pair[2];
};

/* Does the rule need the stack pointer alone, and lead outward? */
LW_INLINE bool lw_trail_can_follow(uint32_t rule)
{
	return lw_rule_type(rule) == LW_RULE_SP && lw_rule_cfa(rule);
}

LW_INLINE void lw_trail_end(struct lw_trail *trail, uint32_t nr)
{
	trail->nr = nr;
	trail->steps[nr] = (struct lw_trail_step){ 0, UINT32_MAX, 0 };
}

/* The trail of the walk before; emptied if code was unmapped since. */
LW_INLINE const struct lw_trail_step *lw_trail_read(struct lw_trails *trails, uint32_t generation)
{
	struct lw_trail *last = &trails->pair[trails->turn & 1];

	if (LW_UNLIKELY(!last->nr || last->generation != generation))
		lw_trail_end(last, 0);
	return last->steps;
}

LW_INLINE struct lw_trail_step *lw_trail_write(struct lw_trails *trails)
{
	return trails->pair[~trails->turn & 1].steps;
}

/* The place in the last trail for a frame with this stack pointer, not before `at`. */
LW_INLINE const struct lw_trail_step *lw_trail_seek(const struct lw_trail_step *at, uintptr_t sp)
{
	while (at->sp < (uint32_t)sp)
		at++;
	return at;
}

/* A walk left nr steps, and saw nothing of the last trail from `rest` on. */
LW_INLINE void lw_trail_keep(struct lw_trails *trails, uint32_t nr, const struct lw_trail_step *rest,
		uint32_t generation)
{
	const struct lw_trail *last = &trails->pair[trails->turn & 1];
	struct lw_trail *trail = &trails->pair[~trails->turn & 1];
	uint32_t nr_rest = (uint32_t)(last->steps + last->nr - rest);

	if (nr_rest > LW_TRAIL_STEPS - nr)
		nr_rest = LW_TRAIL_STEPS - nr;
	memcpy(trail->steps + nr, rest, nr_rest * sizeof(*rest));
	trail->generation = generation;
	lw_trail_end(trail, nr + nr_rest);
	trails->turn++;
}

#endif
