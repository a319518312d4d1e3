/* SPDX-License-Identifier: MIT */
/*
 * hint.h - what the macros of leakwatch.h announce: file and line of the call that comes next.
 *
 * A macro pushes its site just before the allocation or release it stands at. The hook that this
 * call ends in must find its own site among those that are pending, and no other: between the push
 * and the call the program may evaluate arguments, run the destructor of the object and of all it
 * owns, throw, longjmp away, or find that there is nothing to release. So a site is not simply the
 * top of the stack. It belongs to a hook only if the hook was called from the frame that pushed: the
 * frame pointer is the same (a function that pushes has one, since it asks for its address), both
 * code addresses lie in one function, and the call there names the hook, not another function whose
 * last act was to jump to it. If that last act was the announced call itself, the frame is gone, and
 * the hook returns to where the frame was; the call there must name the function that pushed. Where
 * the call leads through one function on the way (strdup to malloc inside libc, the deleting
 * destructor of a virtual class to operator delete), that function must have been called from there.
 * Sites of frames that are gone (their frame pointer is below the caller's stack) are thrown away.
 *
 * The macros write their sites themselves, into the thread's own memory (leakwatch.h): a call here
 * for each would cost more than all the rest.
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
	LW_HINT_DELETE, /* the only one with bit 2: see lw_hint_use() */
};

/* As leakwatch.h has it. */
struct lw_pending {
	uintptr_t frame;	/* pointer of the frame that pushed: its stack begins 16 bytes above */
	uintptr_t pc;		/* in the function that pushed, where it did */
	const char *file;
	uint32_t line;
	uint32_t what;		/* enum lw_hint_for, and LW_PENDING_* */
};

enum {
	LW_PENDING_FOR = 0xf,
	LW_PENDING_SCOPED = 1 << 4,	/* taken back by lw_hint_pop() */
	LW_PENDING_TAKEN = 1 << 5,
};

/* What is known of a push's address: its function's range, and the hint of its file and line. */
struct lw_hint_place {
	uintptr_t pc;
	uintptr_t start, end;
	uintptr_t direct_pc; /* return address of a call there that was seen to name one of our hooks */
	uint32_t generation;
	uint32_t hint;
	const char *file;
	uint32_t line, reserved;
};

/* A release that was found to be the one its site announced: if it is right, nothing has to be looked up again. */
struct lw_hint_match {
	uintptr_t call;		/* its return address */
	uintptr_t pc;		/* of the site */
};

/* One per thread, in its room. */
struct lw_hints {
	struct lw_hint_match matches[1 << LW_HINT_PLACE_BITS];
	struct lw_pending pending[LW_MAX_PENDING];
	struct lw_hint_place places[1 << LW_HINT_PLACE_BITS];
};

/* Pushes a site into a thread that has room; throws away those of frames that are gone, or the oldest. */
struct lw_pending *lw_hint_push(struct lw_thread *thread, const struct lw_pending *site);

/* Takes back what was pushed to this place, and all that came after it. */
void lw_hint_pop(struct lw_thread *thread, struct lw_pending *place);

/* The hint of the site that belongs to this hook's call; 0 none. keep: do not use the site up yet. */
uint32_t lw_hint_search(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame, bool keep);

/* Is a site pending in this thread? */
LW_INLINE bool lw_hint_is_pending(const struct lw_thread *thread)
{
	return thread->next_site != thread->sites;
}

/* The site is used up by that. */
LW_INLINE uint32_t lw_hint_find(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame)
{
	return lw_hint_is_pending(thread) ? lw_hint_search(thread, kind, frame, false) : 0;
}

LW_INLINE struct lw_hint_match *lw_hint_match_at(struct lw_hints *hints, uintptr_t pc)
{
	return &hints->matches[pc % LW_ARRAY_LENGTH(hints->matches)];
}

/* A delete stays until the end of its expression takes it back: members may be released in the same frame first. */
LW_INLINE void lw_hint_use(struct lw_thread *thread, struct lw_pending *site)
{
	if (site->what & LW_HINT_DELETE)
		site->what |= LW_PENDING_TAKEN;
	else
		thread->next_site = site;
}

/*
 * The newest site, if it is of the frame that called the hook, or was called by that and has jumped here;
 * else NULL. Whether the call is the one it announces is another question.
 */
LW_INLINE struct lw_pending *lw_hint_of_frame(struct lw_thread *thread, const struct lw_frame *frame)
{
	struct lw_pending *site = thread->next_site - 1;

	if (LW_UNLIKELY(!lw_hint_is_pending(thread) ||
			(site->frame != frame->fp && site->frame != frame->sp - 16)))
		return NULL;
	return site;
}

/*
 * A memo's key with the site in it, never one of lw_site_key(); key: of the kind alone. The line is there for
 * sites that the compiler has made one of, as much of it as there is room. What it finds was found before with the same
 * calls, from the same place, by a search that used up this site.
 */
LW_INLINE uint64_t lw_hint_memo_key(const struct lw_pending *site, uint32_t key)
{
	return UINT64_C(1) << 63 | (uint64_t)site->line << 52 | (uint64_t)site->pc << 5 | key;
}

/* Uses the newest site up, if a release called from here was found to be its before. */
LW_INLINE bool lw_hint_use_known(struct lw_thread *thread, const struct lw_frame *frame)
{
	struct lw_pending *site = lw_hint_of_frame(thread, frame);
	const struct lw_hint_match *match = lw_hint_match_at(thread->hints, frame->pc);

	if (LW_UNLIKELY(!site || match->call != frame->pc || match->pc != site->pc))
		return false;
	lw_hint_use(thread, site);
	return true;
}

#endif
