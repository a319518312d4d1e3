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
	uint8_t what;		/* enum lw_hint_for */
	bool is_scoped;		/* taken back by lw_hint_pop() */
	bool is_taken;
	uint8_t reserved;
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

/* One per thread, in its room. */
struct lw_hints {
	uint32_t nr;
	uint32_t reserved;
	struct lw_pending pending[LW_MAX_PENDING];
	struct lw_hint_place places[1 << LW_HINT_PLACE_BITS];
};

/* The number to pop; 0: nothing was pushed. */
uint32_t lw_hint_push(struct lw_thread *thread, const struct lw_frame *frame, const char *file, uint32_t line,
		enum lw_hint_for what, bool is_scoped);
/* Takes back what the push that returned `number` pushed, and all that came after it. */
void lw_hint_pop(struct lw_thread *thread, uint32_t number);

/* The hint of the site that belongs to this hook's call; 0 none. keep: do not use it up yet. */
uint32_t lw_hint_find(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame, bool keep);

/* Is a site pending in this thread that might be this release's? */
LW_INLINE bool lw_hint_is_pending(const struct lw_thread *thread)
{
	return thread->hints && thread->hints->nr;
}

#endif
