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
#include "preload/record/blocks.h"
#include "preload/record/hint.h"
#include "preload/share/region.h"
#include "preload/unwind/unwind.h"

void lw_track_alloc(const void *ptr, size_t bytes, enum lw_kind kind, const struct lw_frame *frame);

/* The same where an alignment was asked for; it is a power of two, or 0. */
void lw_track_alloc_aligned(const void *ptr, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_frame *frame);

/* Forgets the block; what it was is looked at (family, double free) and told to the report. */
void lw_track_free(const void *ptr, enum lw_kind release, const struct lw_frame *frame);
/* Releases that say how big the block is, or how it is aligned (bytes NULL: not said). */
void lw_track_free_sized(const void *ptr, enum lw_kind release, size_t bytes, const struct lw_frame *frame);
void lw_track_free_aligned(const void *ptr, enum lw_kind release, size_t align, const size_t *bytes,
		const struct lw_frame *frame);

/*
 * The record of a block that is about to be reallocated, taken out but still counted. False: not
 * tracked. Exactly one of the three below follows for a true answer.
 */
bool lw_track_detach(const void *ptr, const struct lw_frame *frame, struct lw_block *block);
void lw_track_reattach(const void *ptr, const struct lw_block *block); /* the call failed */
void lw_track_forget(const struct lw_block *block);		       /* the block is gone */

/*
 * An operator new of another library made this block by itself or through a hook of ours: what an inner hook has
 * recorded is taken back, so that it counts once.
 */
void lw_track_undo(const void *ptr);

/* This block, if it is one, is no leak, whatever becomes of it. */
void lw_track_ignore(const void *ptr);

/* A moment, and what was allocated after it and is still there: bytes, and *blocks. Looks at every block. */
uint32_t lw_track_checkpoint(void);
uint64_t lw_track_unfreed_since(uint32_t checkpoint, uint64_t *blocks);

/* From now on this thread's allocations are (not) recorded; its releases always are. Calls nest. */
void lw_track_pause(bool is_paused);

/*
 * A macro's site, for the call that comes next (hint.h). The number is for taking it back when that
 * call is over; 0: not kept.
 */
uint32_t lw_track_announce_slowly(uintptr_t pc, uintptr_t sp, const char *file, uint32_t line, uint32_t what);

LW_INLINE uint32_t lw_track_announce(uintptr_t pc, uintptr_t sp, const char *file, uint32_t line, uint32_t what)
{
	struct lw_thread *thread = &lw_self;
	struct lw_hints *hints = thread->hints;

	if (LW_UNLIKELY(!hints || !lw_hint_has_room(hints, sp)))
		return lw_track_announce_slowly(pc, sp, file, line, what);
	if (LW_LIKELY(thread->gate == LW_GATE_OPEN))
		thread->gate = LW_GATE_LOOK;
	return lw_hint_push(hints, pc, sp, file, line, what);
}
void lw_track_take_back(uint32_t number);

/* Brings us up; defined in init.c, which alone knows the order. False: not now, or never. */
bool lw_bring_up(void);

/* For init.c: the process is set up, hooks may work. */
void lw_track_start(void);
/* Tracking ends for good. */
void lw_track_stop(void);
bool lw_track_is_on(void);

/* Carries this thread's balance over and fills in what only the end knows (age of the oldest block). */
void lw_track_finish(void);

/* Closes this thread's gate around our own code that may allocate; true if it was not closed. */
bool lw_track_enter(void);
void lw_track_leave(void);

/* Called by a forked child once its tables are its own (init.c: register with the cleaner ...). */
void lw_child_started(void);

#endif
