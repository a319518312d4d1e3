/* SPDX-License-Identifier: MIT */
/* asked.c - ignoring, pausing, checkpoints, and announced sites; see asked.h. */
#include "preload/record/asked.h"

#include "preload/record/count.h"
#include "preload/record/sample.h"
#include "preload/record/sites.h"
#include "preload/record/track.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"

/* The block goes on under a site of its own sort; both sites' counts stay true. */
static void move_to_ignored(struct lw_thread *thread, uintptr_t address, struct lw_block block)
{
	uint32_t site = lw_sites_intern_ignored(block.site, &thread->scratch->stack), from = block.site;
	struct lw_weight weight = lw_weight_of(address, block.bytes);
	struct lw_block stale;
	bool is_stale;

	if (!site || site == from)
		return;
	(void)lw_blocks_remove(address, &block);
	block.site = site;
	(void)lw_blocks_insert(lw_hide((const void *)address), &block, &is_stale, &stale); /* its leaf is there */
	lw_count_alloc_undo(thread, from, weight.bytes, weight.blocks);
	lw_count_alloc(thread, site, weight.bytes, weight.blocks);
}

void lw_asked_ignore(const void *ptr)
{
	struct lw_block block;

	if (!lw_track_enter())
		return;
	if (lw_blocks_find((uintptr_t)ptr, &block) && block.site && !block.is_inherited)
		move_to_ignored(&lw_self, (uintptr_t)ptr, block);
	lw_track_leave();
}

uint32_t lw_asked_checkpoint(void)
{
	uint32_t now, floor;

	if (!lw_track_enter())
		return 0;
	now = lw_block_birth(lw_box_now_ms());
	floor = lw_load(&lw_hot.birth_floor);
	if (floor < now)
		floor = now;
	if (floor < LW_BLOCK_LAST_BIRTH)
		floor++;
	lw_store(&lw_hot.birth_floor, floor);
	lw_track_leave();
	return floor;
}

struct since {
	uint32_t birth;
	uint64_t bytes, blocks;
};

static void count_since(void *context, uintptr_t address, const struct lw_block *block)
{
	struct since *since = context;
	struct lw_weight weight;

	if (block->is_inherited || block->birth < since->birth ||
			lw_load(&lw_box_site(block->site)->flags) & LW_SITE_IGNORED)
		return;
	weight = lw_weight_of(address, block->bytes);
	since->bytes += weight.bytes;
	since->blocks += weight.blocks;
}

uint64_t lw_asked_unfreed_since(uint32_t checkpoint, uint64_t *blocks)
{
	struct since since = { .birth = checkpoint };

	*blocks = 0;
	if (!checkpoint || !lw_track_enter())
		return 0;
	lw_lock_acquire(&lw_sites_lock); /* one visit at a time */
	lw_blocks_visit(count_since, &since);
	lw_lock_release(&lw_sites_lock);
	lw_track_leave();
	*blocks = since.blocks;
	return since.bytes;
}

void lw_asked_pause(bool is_paused)
{
	struct lw_thread *thread = &lw_self;

	if (!lw_track_enter())
		return;
	if (is_paused) {
		thread->nr_paused++;
		lw_wrong_not_all_known();
	} else if (thread->nr_paused) {
		thread->nr_paused--;
	}
	lw_track_leave();
}

struct lw_pending *lw_asked_announce(const struct lw_pending *site)
{
	struct lw_thread *thread = &lw_self;

	if (!thread->sites) {
		if (!lw_track_enter()) /* sets up a thread that was never here */
			return NULL;
		lw_track_leave();
		if (!thread->sites)
			return NULL;
	}
	if (thread->gate == LW_GATE_OPEN)
		thread->gate = LW_GATE_LOOK;
	return lw_hint_push(thread, site);
}

void lw_asked_take_back(struct lw_pending *place)
{
	lw_hint_pop(&lw_self, place);
}

void lw_track_nothing_slowly(enum lw_kind kind, const struct lw_call *call)
{
	const struct lw_frame frame = lw_frame_of(call);
	struct lw_thread *thread = &lw_self;

	if (!lw_hint_is_pending(thread) || !lw_track_enter())
		return;
	(void)lw_hint_find(thread, kind, &frame);
	lw_track_leave();
}
