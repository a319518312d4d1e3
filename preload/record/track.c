/* SPDX-License-Identifier: MIT */
/* track.c - the allocation events; see track.h. */
#include "preload/record/track.h"

#include <time.h>

#include "preload/base/hot.h"
#include "preload/base/real.h"
#include "preload/base/sys.h"
#include "preload/record/capture.h"
#include "preload/record/count.h"
#include "preload/record/enter.h"
#include "preload/record/families.h"
#include "preload/record/hint.h"
#include "preload/record/history.h"
#include "preload/record/sample.h"
#include "preload/record/sites.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/stack.h"

enum { NS_PER_MS = 1000000 };

static LW_COLD void look(uint64_t ms)
{
	lw_store(&lw_hot.next_look_ms, ms + LW_LOOK_MS);
	lw_now_and_then();
}

/* The coarse clock has moved, or a sample of the history is under way and wants a hand. */
static LW_COLD void tick(struct lw_thread *thread, const struct timespec *now)
{
	uint64_t ns = (uint64_t)now->tv_sec * UINT64_C(1000000000) + (uint64_t)now->tv_nsec;
	uint64_t ms = (ns - lw_hot.start_ns) / NS_PER_MS;

	thread->tick_s = now->tv_sec;
	thread->tick_ns = now->tv_nsec;
	thread->birth = lw_block_birth(ms);
	if (LW_UNLIKELY(ms >= lw_load(&lw_hot.next_sample_ms)))
		lw_history_step(ms);
	if (LW_UNLIKELY(ms >= lw_load(&lw_hot.next_look_ms)))
		look(ms);
}

/*
 * Since the clock is read here, this is where what is to be done now and then learns that it is time. It moves
 * every few milliseconds, so nearly always what it said before holds.
 */
LW_INLINE uint32_t birth_now(struct lw_thread *thread)
{
	struct timespec now = { 0 };
	uint32_t floor;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* in the vdso: no system call, no errno */
	if (LW_UNLIKELY(now.tv_nsec != thread->tick_ns || now.tv_sec != thread->tick_s ||
			!lw_load(&lw_hot.next_sample_ms)))
		tick(thread, &now);
	floor = lw_load(&lw_hot.birth_floor);
	return LW_LIKELY(thread->birth >= floor) ? thread->birth : floor;
}

/*
 * A record was found where a new block is. Its release was not seen (a handler inside our code); or another
 * allocator serves one of our hooks by calling another of them (posix_memalign, memalign): it counts once.
 */
static LW_COLD void replace(struct lw_thread *thread, struct lw_hidden hidden, const struct lw_block *stale,
		const struct lw_block *block)
{
	struct lw_weight weight = lw_weight_of(lw_reveal(hidden), stale->bytes);

	if (!lw_real.is_glibc && stale->bytes == block->bytes && block->birth - stale->birth <= 1 &&
			!stale->is_inherited) {
		lw_count_alloc_undo(thread, stale->site, weight.bytes, weight.blocks);
		return;
	}
	lw_box_drop(LW_DROP_STALE);
	if (!stale->is_inherited)
		lw_count_free(thread, stale->site, weight.bytes, weight.blocks);
}

/* False: not recorded. It must not be counted then, since its release will not be. */
static LW_NOINLINE bool insert(struct lw_thread *thread, struct lw_hidden hidden, const struct lw_block *block)
{
	struct lw_block stale;
	bool is_stale;

	lw_sample_count_in(lw_reveal(hidden)); /* while sampling is on nothing is searched */
	if (LW_UNLIKELY(!lw_blocks_insert(hidden, block, &is_stale, &stale))) {
		lw_box_drop(LW_DROP_BLOCKS);
		return false;
	}
	if (LW_UNLIKELY(is_stale))
		replace(thread, hidden, &stale, block);
	return true;
}

/* Where the word of a new block will be, if that is easily said; it is likely to be far away, so it is fetched already. */
LW_INLINE uint64_t *prefetch_word(struct lw_hidden hidden)
{
	uint64_t *at = lw_block_fine_only(lw_reveal(hidden));

	if (LW_LIKELY(at))
		__builtin_prefetch(at, 1);
	return at;
}

static LW_NOINLINE void note_elsewhere(struct lw_thread *thread, struct lw_hidden hidden, size_t bytes, uint32_t site,
		enum lw_family family, uint32_t birth)
{
	const struct lw_block block = { .site = site, .birth = birth, .bytes = bytes, .family = family };

	if (insert(thread, hidden, &block))
		lw_count_alloc(thread, site, bytes, 1);
}

/* The rest of an allocation, when its site is known. at: of prefetch_word(). */
LW_INLINE void note_block(struct lw_thread *thread, struct lw_hidden hidden, size_t bytes, uint32_t site,
		enum lw_family family, uint64_t *at)
{
	uint32_t birth = birth_now(thread);

	if (LW_LIKELY(at && bytes < LW_BLOCK_BIG) && LW_LIKELY(!lw_block_is_held(lw_load(at)))) {
		lw_store(at, lw_block_pack(lw_reveal(hidden), &(struct lw_block){ site, birth, bytes, family, false }));
		lw_count_alloc(thread, site, bytes, 1);
	} else {
		note_elsewhere(thread, hidden, bytes, site, family, birth);
	}
}

/* Any allocation that is recorded, and what it counts for. */
static void note_alloc(struct lw_thread *thread, struct lw_hidden hidden, size_t bytes, uint32_t key,
		enum lw_family family, const struct lw_frame *frame)
{
	struct lw_block block = { .bytes = bytes, .family = family };
	struct lw_weight weight;

	lw_stack_refresh(thread);
	block.site = lw_memo_find(thread, frame, key);
	if (LW_UNLIKELY(!block.site))
		block.site = lw_capture(thread, frame, key, key);
	block.birth = birth_now(thread);
	if (!insert(thread, hidden, &block))
		return;
	weight = lw_weight_of(lw_reveal(hidden), bytes);
	lw_count_alloc(thread, block.site, weight.bytes, weight.blocks);
}

/* The same where the gate is closed, the thread new or late, or paused by the program. */
static LW_NOINLINE void alloc_slowly(struct lw_hidden hidden, size_t bytes, uint32_t key, enum lw_family family,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = &lw_self;
	bool is_chosen = lw_hot.sample_bytes;
	uint32_t hint;

	if (is_chosen && lw_sample_passes(thread, bytes))
		return;
	if (!lw_enter(thread)) {
		lw_blocks_forget(lw_reveal(hidden));
		if (!lw_track_is_over())
			lw_box_drop(LW_DROP_REENTRANT);
		return;
	}
	if (thread->nr_paused) {
		lw_blocks_forget(lw_reveal(hidden));
	} else if (is_chosen || !lw_hot.sample_bytes || !lw_sample_passes(thread, bytes)) { /* only now it may be known */
		hint = lw_hint_find(thread, lw_key_kind(key), &frame);
		note_alloc(thread, hidden, bytes, key | lw_site_key(LW_KIND_UNKNOWN, 0, hint), family, &frame);
	}
	lw_leave(thread);
}

/* The site of an allocation that macros' sites are pending for, of which one may be its own; and the gate to be. */
static LW_NOINLINE enum lw_gate search_site(struct lw_thread *thread, const struct lw_frame *frame, uint32_t key,
		uint32_t *site)
{
	struct lw_pending *newest = lw_hint_of_frame(thread, frame);
	uint64_t memo_key = newest ? lw_hint_memo_key(newest, key) : 0;
	uint32_t hint = lw_hint_find(thread, lw_key_kind(key), frame);

	key |= lw_site_key(LW_KIND_UNKNOWN, 0, hint);
	if (hint && newest && thread->next_site == newest) {
		*site = lw_capture(thread, frame, key, memo_key);
	} else {
		*site = lw_memo_find(thread, frame, key);
		if (!*site)
			*site = lw_capture(thread, frame, key, key);
	}
	return lw_open_or_look(thread);
}

static LW_COLD uint32_t capture(struct lw_thread *thread, const struct lw_call *call, uint32_t key)
{
	const struct lw_frame frame = lw_frame_of(call);

	return lw_capture(thread, &frame, key, key);
}

/* A macro's site is pending: this allocation's, nearly always. */
static LW_HOT void alloc_announced(struct lw_hidden hidden, size_t bytes, enum lw_kind kind,
		const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = lw_own_thread();
	uint64_t *at = prefetch_word(hidden);
	struct lw_pending *newest = lw_hint_of_frame(thread, &frame);
	uint32_t key = lw_site_key(kind, 0, 0), site = 0;
	enum lw_gate after = LW_GATE_LOOK; /* another will come soon */

	lw_stack_refresh(thread);
	if (LW_LIKELY(newest))
		site = lw_memo_find(thread, &frame, lw_hint_memo_key(newest, key));
	if (LW_LIKELY(site))
		thread->next_site = newest;
	else
		after = search_site(thread, &frame, key, &site);
	note_block(thread, hidden, bytes, site, lw_family_of(kind), at);
	lw_leave_quickly(thread, after);
}

static LW_HOT void alloc_unannounced(struct lw_hidden hidden, size_t bytes, enum lw_kind kind,
		const struct lw_call *call)
{
	struct lw_thread *thread = lw_own_thread();
	uint64_t *at = prefetch_word(hidden);
	uint32_t key = lw_site_key(kind, 0, 0), site;

	lw_stack_refresh(thread);
	site = lw_memo_find_at(thread, call->pc, (uintptr_t)(call + 1), call->fp, key);
	if (LW_UNLIKELY(!site))
		site = capture(thread, call, key);
	note_block(thread, hidden, bytes, site, lw_family_of(kind), at);
	lw_leave_quickly(thread, LW_GATE_OPEN);
}

/* These only choose, so that they need no frame of their own. */
void lw_track_alloc(struct lw_hidden hidden, size_t bytes, enum lw_kind kind, const struct lw_call *call)
{
	struct lw_thread *thread = lw_own_thread();
	uint32_t gate = lw_enter_quickly(thread);

	if (LW_LIKELY(gate == LW_GATE_OPEN))
		alloc_unannounced(hidden, bytes, kind, call);
	else if (gate == LW_GATE_LOOK)
		alloc_announced(hidden, bytes, kind, call);
	else
		alloc_slowly(hidden, bytes, lw_site_key(kind, 0, 0), lw_family_of(kind), call);
}

void lw_track_alloc_aligned(struct lw_hidden hidden, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_call *call)
{
	uint32_t align_log2 = align ? (uint32_t)__builtin_ctzll(align) : 0;
	enum lw_family family = lw_family_of(kind);

	alloc_slowly(hidden, bytes, lw_site_key(kind, align_log2, 0),
			family == LW_FAMILY_MALLOC ? family : LW_FAMILY_NEW_ALIGNED, call);
}

/* The hint of a realloc that releases a wrong block: its site is used up only by what it allocates. */
static uint32_t peek(struct lw_thread *thread, const struct lw_frame *frame)
{
	return lw_hint_is_pending(thread) ? lw_hint_search(thread, LW_KIND_REALLOC_FREE, frame, true) : 0;
}

bool lw_track_detach(struct lw_hidden hidden, const struct lw_call *call, struct lw_block *block)
{
	static const struct lw_release resizing = { .kind = LW_KIND_REALLOC_FREE, .family = LW_FAMILY_MALLOC };
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = &lw_self;
	bool is_tracked;

	if ((lw_hot.sample_bytes && !lw_sample_holds(lw_reveal(hidden))) || !lw_enter(thread))
		return false;
	is_tracked = lw_blocks_remove(lw_reveal(hidden), block);
	if (is_tracked)
		lw_sample_count_out(lw_reveal(hidden));
	if (LW_UNLIKELY(!is_tracked))
		lw_wrong_address(thread, lw_reveal(hidden), &resizing, &frame, peek(thread, &frame));
	else if (LW_UNLIKELY(block->family != LW_FAMILY_MALLOC))
		lw_wrong_release(thread, block, &resizing, &frame, peek(thread, &frame));
	lw_leave(thread);
	return is_tracked;
}

void lw_track_reattach(struct lw_hidden hidden, const struct lw_block *block)
{
	struct lw_thread *thread = &lw_self;

	if (!lw_enter(thread))
		return;
	if (insert(thread, hidden, block) && LW_UNLIKELY(block->is_inherited))
		lw_blocks_disown(lw_reveal(hidden));
	lw_leave(thread);
}

void lw_track_forget(struct lw_hidden hidden, const struct lw_block *block)
{
	struct lw_weight weight = lw_weight_of(lw_reveal(hidden), block->bytes);
	struct lw_thread *thread = &lw_self;

	if (!lw_enter(thread))
		return;
	if (block->is_inherited)
		lw_add(&lw_box->inherited_blocks, weight.blocks);
	else
		lw_count_free(thread, block->site, weight.bytes, weight.blocks);
	lw_leave(thread);
}

void lw_track_undo(struct lw_hidden hidden)
{
	struct lw_thread *thread = &lw_self;
	struct lw_weight weight;
	struct lw_block block;

	if (!lw_enter(thread))
		return;
	if (lw_blocks_remove(lw_reveal(hidden), &block))
		lw_sample_count_out(lw_reveal(hidden));
	else
		block.is_inherited = true;
	if (!block.is_inherited) {
		weight = lw_weight_of(lw_reveal(hidden), block.bytes);
		lw_count_alloc_undo(thread, block.site, weight.bytes, weight.blocks);
	}
	lw_leave(thread);
}
