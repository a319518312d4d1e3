/* SPDX-License-Identifier: MIT */
/*
 * wrong.h - releases that do not fit: what is wrong with them, and whether that is certain.
 *
 * Called with the gate closed, before the real release runs, when track has seen that something is
 * not as it should be. What is found goes to the list of events in the region, and when it is seen
 * for the first time it is told at once (lw_tell_event), because the release may end the process.
 *
 * No alarm is false: memory that is not ours (from before we were loaded, another allocator's, a
 * hook's own inner release) is never mentioned. A second release is known by the record that the
 * block left behind, which is true only for an allocator whose every entry point is hooked: glibc's.
 */
#ifndef LW_RECORD_WRONG_H
#define LW_RECORD_WRONG_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/record/blocks.h"
#include "preload/share/region.h"
#include "preload/unwind/unwind.h"

/* A release, as the hook knows it. */
struct lw_release {
	enum lw_kind kind;
	enum lw_family family;
	bool has_bytes;
	bool has_align;
	size_t bytes;	/* what the block's size is said to be */
	size_t align;	/* what its alignment is said to be */
};

/* The block is tracked, but its family, size or alignment is not the release's. hint: a macro's site, or 0. */
void lw_wrong_release(struct lw_thread *thread, const struct lw_block *block, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint);

/* No block is tracked at this address. */
void lw_wrong_address(struct lw_thread *thread, uintptr_t address, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint);

/* Some allocations of this process are not recorded: from now on an unknown address means nothing. */
void lw_wrong_not_all_known(void);
bool lw_wrong_is_all_known(void);

/*
 * Says one event of the region to whoever started the program, names and all, and waits for that a
 * bounded time; defined in live/tell.c.
 */
void lw_tell_event(uint32_t index);

#endif
