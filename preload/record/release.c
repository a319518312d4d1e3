/* SPDX-License-Identifier: MIT */
/*
 * release.c - a block is released: its record goes, and what it was is held against how it is released.
 *
 * That takes a dozen instructions on the ordinary way, because the record's word has it all. What is not as it
 * should be leaves that way for good, so that nothing need be kept in registers for it. Declared in track.h.
 */
#include "preload/record/count.h"
#include "preload/record/enter.h"
#include "preload/record/families.h"
#include "preload/record/sample.h"
#include "preload/record/track.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"

/* A block whose record was taken out is freed, unless it was a parent's. */
LW_INLINE void count_removed(struct lw_thread *thread, const void *ptr, const struct lw_block *block)
{
	struct lw_weight weight = lw_weight_of((uintptr_t)ptr, block->bytes);

	if (LW_UNLIKELY(block->is_inherited))
		lw_add(&lw_box->inherited_blocks, weight.blocks);
	else
		lw_count_free(thread, block->site, weight.bytes, weight.blocks);
}

LW_INLINE bool remove_block(struct lw_thread *thread, const void *ptr, struct lw_block *block)
{
	if (LW_UNLIKELY(!lw_blocks_remove((uintptr_t)ptr, block)))
		return false;
	lw_sample_count_out((uintptr_t)ptr);
	count_removed(thread, ptr, block);
	return true;
}

/* What names an alignment, or a size without one, is looked at as if it were wrong. */
LW_INLINE void note_release(struct lw_thread *thread, const void *ptr, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	struct lw_block block;

	if (LW_UNLIKELY(!remove_block(thread, ptr, &block)))
		lw_wrong_address(thread, (uintptr_t)ptr, release, frame, hint);
	else if (LW_UNLIKELY(block.family != release->family ||
			(release->has_bytes && (block.bytes != release->bytes || release->kind == LW_KIND_FREE)) ||
			release->has_align))
		lw_wrong_release(thread, &block, release, frame, hint);
}

static LW_NOINLINE void release_slowly(const void *ptr, const struct lw_release *release,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = &lw_self;

	if (lw_hot.sample_bytes && !lw_sample_holds((uintptr_t)ptr))
		return; /* it was passed over */
	if (!lw_track_enter())
		return; /* a record may stay: it is replaced, and counted, when the address comes again */
	note_release(thread, ptr, release, &frame, lw_hint_find(thread, release->kind, &frame));
	lw_track_leave();
}

/* What the cold side is told of a release; made there, so that the ordinary way need not. */
LW_INLINE struct lw_release describe(enum lw_kind kind, bool has_bytes, size_t bytes)
{
	return (struct lw_release){
		.kind = kind, .family = lw_family_of(kind), .has_bytes = has_bytes, .bytes = bytes
	};
}

static LW_COLD void closed(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call)
{
	const struct lw_release release = describe(kind, has_bytes, bytes);

	release_slowly(ptr, &release, call);
}

/* There is no block at this address. */
static LW_COLD void wrong_address(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call, uint32_t hint)
{
	const struct lw_frame frame = lw_frame_of(call);
	const struct lw_release release = describe(kind, has_bytes, bytes);

	lw_wrong_address(&lw_self, (uintptr_t)ptr, &release, &frame, hint);
}

static LW_COLD void wrong(const struct lw_block *block, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call, uint32_t hint)
{
	const struct lw_frame frame = lw_frame_of(call);
	const struct lw_release release = describe(kind, has_bytes, bytes);

	lw_wrong_release(&lw_self, block, &release, &frame, hint);
}

/* lw_family_of(), for a kind that the compiler does not know: one load. */
static const uint8_t families[LW_NR_KINDS] = {
	[LW_KIND_DELETE] = LW_FAMILY_NEW,
	[LW_KIND_DELETE_ARRAY] = LW_FAMILY_NEW_ARRAY,
};

_Static_assert(LW_KIND_DELETE_ARRAY == LW_KIND_DELETE + 1 && LW_FAMILY_NEW_ARRAY == LW_FAMILY_NEW + 1,
		"a delete's family is counted from its kind");

/* Only deletes come with a size here: see the assertion. */
LW_INLINE enum lw_family family_of(enum lw_kind kind, bool has_bytes)
{
	return has_bytes ? LW_FAMILY_NEW + (kind - LW_KIND_DELETE) : families[kind];
}

static bool is_right(const struct lw_block *block, enum lw_kind kind, bool has_bytes, size_t bytes)
{
	return block->family == family_of(kind, has_bytes) && (!has_bytes || block->bytes == bytes);
}

/* A right release that may be announced: that site is used up. The gate to be. */
static LW_NOINLINE enum lw_gate search_release(struct lw_thread *thread, enum lw_kind kind,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);

	(void)lw_hint_find(thread, kind, &frame);
	return lw_open_or_look(thread);
}

/* The rest of a release that is not as it should be, or of a parent's block. */
static LW_COLD void rest_of_odd(const struct lw_block *block, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);

	count_removed(&lw_self, NULL, block); /* all are recorded here, so where it lay does not matter */
	if (!is_right(block, kind, has_bytes, bytes))
		wrong(block, kind, has_bytes, bytes, call, lw_hint_find(&lw_self, kind, &frame));
	else
		(void)lw_hint_find(&lw_self, kind, &frame);
	lw_leave_quickly(&lw_self, lw_open_or_look(&lw_self));
}

static LW_COLD void rest_of_missing(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);

	wrong_address(ptr, kind, has_bytes, bytes, call, lw_hint_find(&lw_self, kind, &frame));
	lw_leave_quickly(&lw_self, lw_open_or_look(&lw_self));
}

/* A release whose record is not in a fine word, or is not as a right release has it. */
static LW_NOINLINE void release_oddly(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call, bool is_announced)
{
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = &lw_self;
	enum lw_gate after = is_announced ? LW_GATE_LOOK : LW_GATE_OPEN;
	struct lw_block block;

	if (LW_UNLIKELY(!lw_blocks_remove((uintptr_t)ptr, &block))) {
		rest_of_missing(ptr, kind, has_bytes, bytes, call);
		return;
	}
	if (LW_UNLIKELY(block.is_inherited || !is_right(&block, kind, has_bytes, bytes))) {
		rest_of_odd(&block, kind, has_bytes, bytes, call);
		return;
	}
	if (is_announced && LW_UNLIKELY(!lw_hint_use_known(thread, &frame)))
		after = search_release(thread, kind, call);
	lw_count_free(thread, block.site, block.bytes, 1);
	lw_leave_quickly(thread, after);
}

LW_INLINE void release_as(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_call *call, bool is_announced)
{
	struct lw_thread *thread = lw_own_thread();
	enum lw_gate after = is_announced ? LW_GATE_LOOK : LW_GATE_OPEN; /* another will come soon */
	uint64_t *at = lw_block_fine_too((uintptr_t)ptr), word, block_bytes;

	if (LW_UNLIKELY(!at)) {
		release_oddly(ptr, kind, has_bytes, bytes, call, is_announced);
		return;
	}
	word = lw_load(at);
	block_bytes = word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG;
	if (LW_UNLIKELY((word ^ lw_block_expected((uintptr_t)ptr, family_of(kind, has_bytes))) & lw_block_expected_bits()) ||
			LW_UNLIKELY(block_bytes == LW_BLOCK_BIG) || (has_bytes && LW_UNLIKELY(block_bytes != bytes))) {
		release_oddly(ptr, kind, has_bytes, bytes, call, is_announced);
		return;
	}
	lw_store(at, word & ~(uint64_t)LW_BLOCK_PRESENT);
	/* for a release that is right it matters only that its own site is used up */
	if (is_announced) {
		const struct lw_frame frame = lw_frame_of(call);

		if (LW_UNLIKELY(!lw_hint_use_known(thread, &frame)))
			after = search_release(thread, kind, call);
	}
	lw_count_free(thread, (uint32_t)(word >> LW_BLOCK_SITE_AT) & (LW_MAX_BLOCK_SITES - 1), block_bytes, 1);
	lw_leave_quickly(thread, after);
}

static LW_HOT void free_announced(const void *ptr, enum lw_kind kind, const struct lw_call *call)
{
	release_as(ptr, kind, false, 0, call, true);
}

static LW_HOT void free_unannounced(const void *ptr, enum lw_kind kind, const struct lw_call *call)
{
	release_as(ptr, kind, false, 0, call, false);
}

static LW_HOT void free_sized_announced(const void *ptr, enum lw_kind kind, size_t bytes,
		const struct lw_call *call)
{
	release_as(ptr, kind, true, bytes, call, true);
}

static LW_HOT void free_sized_unannounced(const void *ptr, enum lw_kind kind, size_t bytes,
		const struct lw_call *call)
{
	release_as(ptr, kind, true, bytes, call, false);
}

void lw_track_free(const void *ptr, enum lw_kind kind, const struct lw_call *call)
{
	struct lw_thread *thread = lw_own_thread();
	uint32_t gate;

	__builtin_prefetch((const char *)ptr - 16, 1); /* the allocator's own head of the block is next */
	gate = lw_enter_quickly(thread);
	if (LW_LIKELY(gate == LW_GATE_OPEN))
		free_unannounced(ptr, kind, call);
	else if (gate == LW_GATE_LOOK)
		free_announced(ptr, kind, call);
	else
		closed(ptr, kind, false, 0, call);
}

void lw_track_free_sized(const void *ptr, enum lw_kind kind, size_t bytes, const struct lw_call *call)
{
	struct lw_thread *thread = lw_own_thread();
	uint32_t gate;

	__builtin_prefetch((const char *)ptr - 16, 1);
	gate = lw_enter_quickly(thread);
	if (LW_LIKELY(gate == LW_GATE_OPEN))
		free_sized_unannounced(ptr, kind, bytes, call);
	else if (gate == LW_GATE_LOOK)
		free_sized_announced(ptr, kind, bytes, call);
	else
		closed(ptr, kind, true, bytes, call);
}

void lw_track_free_promised(const void *ptr, size_t bytes, const struct lw_call *call)
{
	closed(ptr, LW_KIND_FREE, true, bytes, call);
}

void lw_track_free_aligned(const void *ptr, enum lw_kind kind, size_t align, const size_t *bytes,
		const struct lw_call *call)
{
	struct lw_release what = describe(kind, bytes, bytes ? *bytes : 0);

	if (what.family != LW_FAMILY_MALLOC)
		what.family = LW_FAMILY_NEW_ALIGNED;
	what.has_align = true;
	what.align = align;
	release_slowly(ptr, &what, call);
}
