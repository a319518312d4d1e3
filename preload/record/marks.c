/* SPDX-License-Identifier: MIT */
/* marks.c - the list of marks in the region; see marks.h. */
#include "preload/record/marks.h"

#include <string.h>

#include "preload/record/threads.h"
#include "preload/record/track.h"
#include "preload/share/box.h"

enum { MAX_NAME_BYTES = 255 };

struct held {
	uint64_t bytes, blocks;
};

static void add_chunk(struct held *held, uint32_t chunk)
{
	const struct lw_count *counts = (const struct lw_count *)(lw_hot.chunks +
			(size_t)chunk * LW_CHUNK_SITES * sizeof(struct lw_count));

	for (unsigned i = 0; i < LW_CHUNK_SITES; i++) {
		held->bytes += lw_load(&counts[i].alloc_bytes) - lw_load(&counts[i].freed_bytes);
		held->blocks += lw_load(&counts[i].alloc_blocks) - lw_load(&counts[i].freed_blocks);
	}
}

static struct held sum_rows(void)
{
	uint32_t nr_rows = lw_load_acquire(&lw_own.nr_rows);
	uint32_t nr_slices = (lw_load_acquire(&lw_own.nr_sites) + LW_CHUNK_SITES - 1) / LW_CHUNK_SITES;
	struct held held = { 0, 0 };

	for (uint32_t row = 0; row < nr_rows; row++) {
		const uint32_t *dir = (const uint32_t *)(lw_box_row(row) + 1);

		for (uint32_t slice = 0; slice < nr_slices; slice++) {
			uint32_t chunk = lw_load_acquire(&dir[slice]);

			if (chunk && chunk < lw_load(&lw_own.nr_chunks))
				add_chunk(&held, chunk);
		}
	}
	return held;
}

static struct lw_mark *find_locked(const char *name, size_t nr_bytes) LW_HOLDS(lw_sites_lock)
{
	for (uint32_t i = 0; i < lw_own.nr_marks; i++) {
		const char *known = lw_box_pool(lw_box_mark(i)->name_off);

		if (!strncmp(known, name, nr_bytes) && !known[nr_bytes])
			return lw_box_mark(i);
	}
	return NULL;
}

static struct lw_mark *add_locked(const char *name, size_t nr_bytes, const struct held *held)
		LW_HOLDS(lw_sites_lock)
{
	uint32_t off = lw_own.nr_marks < lw_own.max_marks ? lw_box_take_locked(nr_bytes + 1) : 0;
	struct lw_mark *mark;

	if (!off)
		return NULL;
	memcpy(lw_box_pool(off), name, nr_bytes);
	mark = lw_box_mark(lw_own.nr_marks);
	*mark = (struct lw_mark){
		.name_off = off,
		.first_bytes = held->bytes,
		.first_blocks = held->blocks,
		.first_ms = lw_box_now_ms(),
	};
	LW_BOX_PUBLISH(nr_marks, lw_own.nr_marks + 1);
	return mark;
}

static bool pass_locked(const char *name, size_t nr_bytes) LW_HOLDS(lw_sites_lock)
{
	struct held held = sum_rows();
	struct lw_mark *mark = find_locked(name, nr_bytes);

	if (!mark)
		mark = add_locked(name, nr_bytes, &held);
	if (!mark)
		return false;
	lw_store(&mark->last_bytes, held.bytes);
	lw_store(&mark->last_blocks, held.blocks);
	lw_store(&mark->last_ms, lw_box_now_ms());
	lw_store(&mark->count, mark->count + 1);
	lw_store_release(&mark->is_ready, 1);
	return true;
}

void lw_marks_pass(const char *name)
{
	bool is_kept;

	if (!lw_track_enter())
		return;
	lw_lock_acquire(&lw_sites_lock);
	is_kept = pass_locked(name, strnlen(name, MAX_NAME_BYTES));
	lw_lock_release(&lw_sites_lock);
	if (!is_kept)
		lw_box_drop(LW_DROP_MARKS);
	lw_track_leave();
}
