/* SPDX-License-Identifier: MIT */
/*
 * ending.c - the turns of a process that track is told of: exit begins, all is over, a sandbox is entered.
 *
 * Beside the events, and rare; what they find is for the report. Declared in track.h.
 */
#include "preload/base/hot.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/record/blocks_visit.h"
#include "preload/record/count.h"
#include "preload/record/history.h"
#include "preload/record/sample.h"
#include "preload/record/track.h"
#include "preload/share/box.h"

enum { SANDBOX_HEAP_BYTES = 256 << 20 };

void lw_track_prepare_sandbox(void)
{
	uintptr_t heap;

	if (!lw_track_enter())
		return;
	heap = (uintptr_t)lw_syscall(SYS_brk, 0);
	for (uintptr_t at = heap; at < heap + SANDBOX_HEAP_BYTES; at += (uintptr_t)1 << LW_LEAF_BITS) {
		if (!lw_block_leaf(at))
			(void)lw_blocks_add_leaf(at);
	}
	lw_track_leave();
}

void lw_track_exit_begins(void)
{
	/* a process without any event has nothing to note, and need not come up for it now */
	if (!lw_load(&lw_hot.active) || !lw_track_enter())
		return;
	if (lw_sandboxed() || lw_own.pid == lw_sys_getpid()) /* else a vfork child's */
		lw_history_note_exit(lw_box_now_ms());
	lw_track_leave();
}

struct ages {
	uint64_t inherited;
};

LW_INLINE void note_age(void *context, uintptr_t address, uint64_t *at, bool is_coarse)
{
	const struct lw_block block = lw_block_unpack_head(lw_load(at));
	uint32_t born_ms = (uint32_t)lw_block_birth_ms(block.birth);
	struct ages *ages = context;
	struct lw_site *site;

	if (block.is_inherited) {
		ages->inherited += lw_weight_of(address, lw_blocks_unpack(at, is_coarse).bytes).blocks;
		return;
	}
	if (block.site >= lw_load(&lw_own.nr_sites))
		return;
	site = lw_box_site(block.site);
	if (born_ms < site->oldest_ms)
		lw_store(&site->oldest_ms, born_ms);
}

void lw_track_finish(void)
{
	static struct lw_blocks_room room LW_ROOM;
	struct ages ages = { 0 };

	if (!lw_track_enter())
		return;
	lw_count_flush(&lw_self);
	lw_blocks_visit_words(&room, note_age, &ages);
	lw_add(&lw_box->inherited_blocks, ages.inherited);
	lw_track_leave();
}
