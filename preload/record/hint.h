/* SPDX-License-Identifier: MIT */
/*
 * hint.h - what the macros of leakwatch.h announce: file and line of the call that comes next.
 *
 * A macro pushes its site just before the allocation or release it stands at. The hook that this
 * call ends in must find its own site among those that are pending, and no other: between the push
 * and the call the program may evaluate arguments, run the destructor of the object and of all it
 * owns, throw, longjmp away, or find that there is nothing to release. So a site is not simply the
 * top of the stack. It belongs to a hook only if the hook was called from the frame that pushed: the
 * stack pointer after the return is the same, both return addresses lie in one function, and the call
 * there names the hook, not another function whose last act was to jump to it. Where
 * the call leads through one function on the way (strdup to malloc inside libc, the deleting
 * destructor of a virtual class to operator delete), that function must have been called from there.
 * Sites of frames that are gone (their stack pointer is below the caller's) are thrown away.
 *
 * What C++ pushes is taken back when the full expression ends, by the destructor of a temporary; it
 * stays until then, because the compiler may have put members' releases into the same frame, and
 * the object's own release is the last. What C pushes is gone once it was found.
 */
#ifndef LW_RECORD_HINT_H
#define LW_RECORD_HINT_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/share/region.h"
#include "preload/unwind/unwind.h"

enum { LW_MAX_PENDING = 48, LW_HINT_PLACE_BITS = 7 };

/* What a site announces; the numbers are leakwatch.h's. */
enum lw_hint_for {
	LW_HINT_ALLOC,	 /* malloc and its kin; realloc's release too */
	LW_HINT_COPY,	 /* strdup, strndup: libc calls malloc */
	LW_HINT_FREE,
	LW_HINT_NEW,
	LW_HINT_DELETE,
	LW_NR_HINT_FORS,
};

struct lw_pending {
	uintptr_t pc, sp;	/* of the frame that pushed */
	const char *file;
	uint32_t line;
	uint32_t what;		/* enum lw_hint_for, and LW_PENDING_* */
	uint64_t tag;		/* of pc, file and line */
};

enum {
	LW_PENDING_FOR = 0xf,
	LW_PENDING_SCOPED = 1 << 4,	/* taken back by lw_hint_pop() */
	LW_PENDING_TAKEN = 1 << 5,
};

/* What is known of a push's return address: its function's range, and the hint of its file and line. */
struct lw_hint_place {
	uintptr_t pc;
	uintptr_t start, end;
	uintptr_t direct_pc; /* return address of a call there that was seen to name one of our hooks */
	uint32_t generation;
	uint32_t hint;
	const char *file;
	uint32_t line, reserved;
};

/* A call that was found to be the one its site announced: nothing has to be looked up again. */
struct lw_hint_match {
	uintptr_t call;		/* lw_hint_call() */
	uint64_t tag;		/* of the site */
	uint32_t generation;
	uint32_t hint;
};

/* One per thread, in its room. */
struct lw_hints {
	uint32_t nr;
	uint32_t reserved;
	struct lw_hint_match matches[1 << LW_HINT_PLACE_BITS];
	struct lw_pending pending[LW_MAX_PENDING];
	struct lw_hint_place places[1 << LW_HINT_PLACE_BITS];
};

/* Throws away sites of frames that are gone, and makes room for one more. */
void lw_hint_make_room(struct lw_hints *hints, uintptr_t sp);

/* `what` with LW_PENDING_SCOPED; there must be room: see lw_hint_has_room(). The number to pop. */
LW_INLINE uint32_t lw_hint_push(struct lw_hints *hints, uintptr_t pc, uintptr_t sp, const char *file,
		uint32_t line, uint32_t what)
{
	struct lw_pending *site = &hints->pending[hints->nr];

	site->pc = pc;
	site->sp = sp;
	site->file = file;
	site->line = line;
	site->what = what;
	site->tag = ((uintptr_t)file ^ (uint64_t)line << 48) + pc * UINT64_C(0x9e3779b97f4a7c15);
	return ++hints->nr;
}

/* May a site of a frame at sp be pushed as things are? Else lw_hint_make_room() first. */
LW_INLINE bool lw_hint_has_room(const struct lw_hints *hints, uintptr_t sp)
{
	return !hints->nr || (hints->nr < LW_MAX_PENDING && hints->pending[hints->nr - 1].sp >= sp);
}

/* Takes back what the push that returned `number` pushed, and all that came after it. */
void lw_hint_pop(struct lw_thread *thread, uint32_t number);

/* The long way of lw_hint_find(). keep: do not use the site up yet. */
uint32_t lw_hint_search(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame, bool keep);

/* A return address and what the hook is, in one word: addresses have 47 bits. */
LW_INLINE uintptr_t lw_hint_call(enum lw_kind kind, uintptr_t pc)
{
	return pc | (uintptr_t)kind << 56;
}

LW_INLINE struct lw_hint_match *lw_hint_match_at(struct lw_hints *hints, uintptr_t pc)
{
	return &hints->matches[pc % LW_ARRAY_LENGTH(hints->matches)];
}

/* A delete that the end of its expression takes back: members may be released in the same frame first. */
LW_INLINE bool lw_pending_stays(const struct lw_pending *site)
{
	return (site->what & ~(uint32_t)LW_PENDING_TAKEN) == (LW_HINT_DELETE | LW_PENDING_SCOPED);
}

/* The hint of the site that belongs to this hook's call, which is used up by that; 0 none. */
LW_INLINE uint32_t lw_hint_find(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame)
{
	struct lw_hints *hints = thread->hints;
	const struct lw_hint_match *match;
	struct lw_pending *top;

	if (!hints || !hints->nr)
		return 0;
	top = &hints->pending[hints->nr - 1];
	match = lw_hint_match_at(hints, frame->pc);
	if (LW_UNLIKELY(((top->sp ^ frame->sp) | (match->call ^ lw_hint_call(kind, frame->pc)) |
			(match->tag ^ top->tag)) || match->generation != lw_load(&lw_hot.generation)))
		return lw_hint_search(thread, kind, frame, false);
	if (lw_pending_stays(top))
		top->what |= LW_PENDING_TAKEN;
	else
		hints->nr--;
	return match->hint;
}

/* Is a site pending in this thread that might be this release's? */
LW_INLINE bool lw_hint_is_pending(const struct lw_thread *thread)
{
	return thread->hints && thread->hints->nr;
}

#endif
