/* SPDX-License-Identifier: MIT */
/*
 * track.h - what one allocation event means; the only writer of sites and blocks.
 *
 * A hook calls the real allocator and then lw_track_alloc(), or lw_track_free() and then the real
 * release: afterwards another thread may own the address. Realloc detaches the old record, calls
 * the real one, and attaches the outcome. All functions may be called at any time in any thread, and
 * do nothing where the gate is closed (guard.h).
 */
#ifndef LW_RECORD_TRACK_H
#define LW_RECORD_TRACK_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/record/blocks.h"
#include "preload/record/hidden.h"
#include "preload/share/region.h"
#include "preload/unwind/unwind.h"

void lw_track_alloc(struct lw_hidden hidden, size_t bytes, enum lw_kind kind, const struct lw_call *call);

/* The same where an alignment was asked for; it is a power of two, or 0. */
void lw_track_alloc_aligned(struct lw_hidden hidden, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_call *call);

/* A hook's last step: records a new block, and gives its address back without having left it on the stack. */
LW_INLINE void *lw_track_new(void *ptr, size_t bytes, enum lw_kind kind, const struct lw_call *call)
{
	struct lw_hidden hidden = lw_hide(ptr);

	lw_track_alloc(hidden, bytes, kind, call);
	return (void *)lw_reveal(hidden);
}

LW_INLINE void *lw_track_new_aligned(void *ptr, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_call *call)
{
	struct lw_hidden hidden = lw_hide(ptr);

	lw_track_alloc_aligned(hidden, bytes, align, kind, call);
	return (void *)lw_reveal(hidden);
}

/* Forgets the block; what it was is looked at (family, double free) and told to the report. */
void lw_track_free(const void *ptr, enum lw_kind release, const struct lw_call *call);
/* Releases that say how big the block is, or how it is aligned (bytes NULL: not said). */
void lw_track_free_sized(const void *ptr, enum lw_kind release, size_t bytes, const struct lw_call *call);
/* C23's free_sized(): the size, and that no alignment was asked for. */
void lw_track_free_promised(const void *ptr, size_t bytes, const struct lw_call *call);
void lw_track_free_aligned(const void *ptr, enum lw_kind release, size_t align, const size_t *bytes,
		const struct lw_call *call);

/* A call that gave nothing, or released nothing: what a macro announced of it is over. */
void lw_track_nothing_slowly(enum lw_kind kind, const struct lw_call *call);

LW_INLINE void lw_track_nothing(enum lw_kind kind, const struct lw_call *call)
{
	if (LW_UNLIKELY(lw_self.gate == LW_GATE_LOOK))
		lw_track_nothing_slowly(kind, call);
}

/*
 * The record of a block that is about to be reallocated, taken out but still counted. False: not
 * tracked. Exactly one of the three below follows for a true answer.
 */
bool lw_track_detach(struct lw_hidden hidden, const struct lw_call *call, struct lw_block *block);
void lw_track_reattach(struct lw_hidden hidden, const struct lw_block *block); /* the call failed */
void lw_track_forget(struct lw_hidden hidden, const struct lw_block *block);		       /* the block is gone */

/*
 * An operator new of another library made this block by itself or through a hook of ours: what an inner hook has
 * recorded is taken back, so that it counts once.
 */
void lw_track_undo(struct lw_hidden hidden);

/* Brings us up; defined in init.c, which alone knows the order. False: not now, or never. */
bool lw_bring_up(void);

/* For init.c: the process is set up, hooks may work. */
void lw_track_start(void);
/*
 * In the child of a fork made by a signal handler that interrupted our code: that code will go on, so the
 * tables must be the child's own before. Does nothing in any other child.
 */
void lw_track_forked_inside(void);
/* Before the program enters a sandbox: what may be needed soon is made now. */
void lw_track_prepare_sandbox(void);
/* Tracking ends for good. */
void lw_track_stop(void);
bool lw_track_is_on(void);
bool lw_track_is_over(void); /* it was stopped */

/* Exit begins, no handler has run yet: the history keeps what every site holds now. */
void lw_track_exit_begins(void);

/* Carries this thread's balance over and fills in what only the end knows (age of the oldest block). */
void lw_track_finish(void);

/* Closes this thread's gate around our own code that may allocate; true if it was not closed. */
bool lw_track_enter(void);
void lw_track_leave(void);

/* Called now and then, inside an event, at most every LW_LOOK_MS or when much memory came or went (init.c:
 * has a viewer asked?). */
enum { LW_LOOK_MS = 100 };
void lw_now_and_then(void);

/* Called by a forked child once its tables are its own (init.c: register with the cleaner ...). */
void lw_child_started(void);

#endif
