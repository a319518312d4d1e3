/* SPDX-License-Identifier: MIT */
/* wrong.c - what a release that does not fit is called; see wrong.h. */
#include "preload/record/wrong.h"

#include "preload/base/hot.h"
#include "preload/base/real.h"
#include "preload/record/bound.h"
#include "preload/record/capture.h"
#include "preload/record/events.h"
#include "preload/record/families.h"
#include "preload/record/sites.h"
#include "preload/share/box.h"

enum {
	LEAST_COOKIE = 8,	/* sizeof(size_t) */
	LEAST_FAR_COOKIE = 32,	/* from here on the cookie is the alignment of an aligned new[] */
	MOST_COOKIE = 4096,
};

static uint32_t not_all_known;

void lw_wrong_not_all_known(void)
{
	lw_store(&not_all_known, 1);
}

bool lw_wrong_is_all_known(void)
{
	return !lw_load(&not_all_known) && !lw_load(&lw_box->dropped[LW_DROP_BLOCKS]) &&
	       !lw_load(&lw_box->dropped[LW_DROP_REENTRANT]) && !lw_load(&lw_box->dropped[LW_DROP_UNTRACKED]) &&
	       !lw_load(&lw_box->dropped[LW_DROP_STALE]);
}

static void add(struct lw_thread *thread, struct lw_event *event, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	int index;

	event->free_site = lw_capture(thread, frame, lw_site_key(release->kind, 0, hint), 0);
	if (event->alloc_site < lw_load_acquire(&lw_own.nr_sites))
		event->flags |= (uint32_t)lw_box_site(event->alloc_site)->align_log2 << LW_EVENT_ALIGN_AT;
	index = lw_events_add(event);
	if (index >= 0)
		lw_tell_event((uint32_t)index);
}

/* new or new[] for the family that only says "aligned"; for a site without room: nobody knows. */
static enum lw_family plain_family(const struct lw_block *block, enum lw_family release)
{
	if (block->family != LW_FAMILY_NEW_ALIGNED)
		return block->family;
	return block->site ? lw_family_of((enum lw_kind)lw_box_site(block->site)->kind) : release;
}

static bool has_other_align(const struct lw_block *block, const struct lw_release *release)
{
	uint32_t align_log2 = lw_box_site(block->site)->align_log2;

	if (!block->site || release->kind == LW_KIND_REALLOC_FREE)
		return false;
	if (release->has_align)
		return !release->align || release->align != (size_t)1 << align_log2 || !align_log2;
	/* free() takes what aligned_alloc() gave; free_sized() does not */
	return align_log2 && (block->family == LW_FAMILY_NEW_ALIGNED || release->has_bytes);
}

/* The program's own operators may be inlined, and then look like malloc or free in their callers. */
static bool may_be_own_operator(enum lw_family allocated, enum lw_family released)
{
	if (allocated == LW_FAMILY_MALLOC)
		return lw_real.has_own_new;
	return released == LW_FAMILY_MALLOC && lw_real.has_own_delete;
}

void lw_wrong_release(struct lw_thread *thread, const struct lw_block *block, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	enum lw_family released = lw_family_of(release->kind), allocated = plain_family(block, released);
	struct lw_event event = { .alloc_site = block->site, .bytes = block->bytes };

	if (allocated != released) {
		event.what = LW_EVENT_MISMATCH;
		if (may_be_own_operator(allocated, released))
			event.flags = LW_EVENT_UNSURE;
	} else if (has_other_align(block, release)) {
		event.what = LW_EVENT_ALIGNMENT_MISMATCH;
		event.expected = release->has_align ? release->align : 0;
	} else if (release->has_bytes && release->bytes != block->bytes) {
		event.what = LW_EVENT_SIZE_MISMATCH;
		event.expected = release->bytes;
	} else {
		return;
	}
	add(thread, &event, release, frame, hint);
}

/* ---- the count that new[] keeps before objects with a destructor ---- */

/* Is this an array whose objects start `cookie` bytes after the block? Its count must fit its size. */
static bool is_counted_array(const struct lw_block *block, uintptr_t objects, uint64_t cookie)
{
	uint64_t count, bytes;

	if (plain_family(block, LW_FAMILY_MALLOC) != LW_FAMILY_NEW_ARRAY || block->bytes < cookie)
		return false;
	if (cookie >= LEAST_FAR_COOKIE && (uint64_t)1 << lw_box_site(block->site)->align_log2 != cookie)
		return false;
	count = *(const uint64_t *)(objects - 8); /* in a live block, whose bytes are readable */
	bytes = block->bytes - cookie;
	return count ? count <= bytes && bytes % count == 0 : !bytes;
}

/* The objects of an array were released, not the array. */
static bool find_array_before(uintptr_t address, struct lw_block *block, uint64_t *cookie)
{
	for (*cookie = LEAST_COOKIE; *cookie <= MOST_COOKIE && *cookie <= address; *cookie *= 2) {
		if (lw_blocks_find(address - *cookie, block) && is_counted_array(block, address, *cookie))
			return true;
	}
	return false;
}

/*
 * delete[] looked for a count before an object that is no array. glibc's blocks lie 32 bytes apart, so
 * one that starts 8 or 16 bytes further cannot be a neighbour. But at 16 it may have come after an array that was there
 * and is released a second time. Objects before which 16 bytes are left have a size that 16 divides.
 */
static bool find_object_behind(uintptr_t address, struct lw_block *block, uint64_t *cookie)
{
	if (!lw_real.is_glibc)
		return false;
	for (*cookie = LEAST_COOKIE; *cookie < LEAST_FAR_COOKIE; *cookie *= 2) {
		if (lw_blocks_find(address + *cookie, block) &&
				plain_family(block, LW_FAMILY_NEW_ARRAY) != LW_FAMILY_NEW_ARRAY &&
				block->bytes % (*cookie == LEAST_COOKIE ? 1 : *cookie) == 0)
			return true;
	}
	return false;
}

static bool report_cookie(struct lw_thread *thread, uintptr_t address, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	struct lw_event event = { .what = LW_EVENT_MISMATCH, .flags = LW_EVENT_COOKIE };
	struct lw_block block;

	if (!find_array_before(address, &block, &event.expected) &&
			!(release->kind == LW_KIND_DELETE_ARRAY &&
					find_object_behind(address, &block, &event.expected)))
		return false;
	event.alloc_site = block.site;
	event.bytes = block.bytes;
	add(thread, &event, release, frame, hint);
	return true;
}

void lw_wrong_address(struct lw_thread *thread, uintptr_t address, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	bool is_whole = lw_real.is_glibc && !lw_real.is_overridden;
	struct lw_event event = { .what = LW_EVENT_DOUBLE_FREE };
	struct lw_block block;

	if (address == thread->passing || report_cookie(thread, address, release, frame, hint))
		return;
	if (is_whole && lw_blocks_find_removed(address, &block)) {
		if (lw_bound_elsewhere()) /* it may have been given out again, unseen */
			return;
		event.alloc_site = block.site;
		event.bytes = block.bytes;
		add(thread, &event, release, frame, hint);
	} else if (is_whole && lw_wrong_is_all_known() && hint) {
		event.what = LW_EVENT_UNKNOWN_FREE;
		add(thread, &event, release, frame, hint);
	}
}
