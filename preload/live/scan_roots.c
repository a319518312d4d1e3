/* SPDX-License-Identifier: MIT */
/*
 * scan_roots.c - telling the program's memory from the allocator's; see scan_roots.h.
 *
 * Under glibc this is exact. A block of its own mapping says so in its chunk's head, with the
 * extent; a block of another arena says so too, and the arena's heap has a head at a multiple of its
 * size; all others lie in the area of brk. Free memory in those is no root, whatever old words
 * are in it. A page of a mapping outside of them is the program's, also where the kernel has merged it
 * with the allocator's.
 *
 * Of another allocator nothing is known but where its blocks are. Memory without a block may be its
 * tables, free memory or the program's own mapping. So it is treated like a block that nobody
 * allocated: it counts, with what it points to, when something else points into it. The allocator's
 * own variables do not count, or its tables would keep every block alive. The same is done with the memory
 * between blocks where some were not recorded.
 */
#include "preload/live/scan_roots.h"

#include <dlfcn.h>
#include <link.h>

#include "preload/base/early.h"
#include "preload/base/mem.h"
#include "preload/share/box.h"

enum {
	LEAST_GAP_BYTES = 48, /* less between two blocks is the allocator's heads and rounding */
	CHUNK_HEAD_BYTES = 16,
	CHUNK_IS_MAPPED = 2,
	CHUNK_IS_FOREIGN = 4, /* not of the main arena */
	CHUNK_FLAGS = 7,
};

static const uintptr_t page_bytes = 4096;
static const uintptr_t heap_max_bytes = UINT64_C(64) << 20; /* HEAP_MAX_SIZE of glibc on 64 bits */

/* The head of an arena's heap, malloc/arena.c. */
struct heap_head {
	uintptr_t arena, previous;
	uintptr_t bytes;     /* of it that are in use, and readable */
	uintptr_t max_bytes; /* that were ever readable */
};

/* ---- whose the memory of blocks is ---- */

static bool is_readable(const struct lw_maps *maps, uintptr_t from, uintptr_t to)
{
	const struct lw_map *map = lw_maps_at(maps, from);

	return map && from >= map->start && to <= map->end && map->flags & LW_MAP_READ;
}

static struct lw_scan_cut mapped_chunk(uintptr_t block, uint64_t bytes, const uint64_t *head)
{
	struct lw_scan_cut chunk = { block - CHUNK_HEAD_BYTES - head[0], block - CHUNK_HEAD_BYTES + (head[1] & ~(uint64_t)CHUNK_FLAGS) };

	if (chunk.start % page_bytes || chunk.end % page_bytes || chunk.start >= block || block + bytes > chunk.end)
		return (struct lw_scan_cut){ 0, 0 };
	return chunk;
}

static struct lw_scan_cut arena_heap(const struct lw_maps *maps, uintptr_t block)
{
	uintptr_t start = block & ~(heap_max_bytes - 1);
	const struct heap_head *heap = (const struct heap_head *)start;

	if (!is_readable(maps, start, start + sizeof(*heap)) || heap->bytes > heap->max_bytes ||
			heap->max_bytes > heap_max_bytes || block >= start + heap->bytes || heap->bytes % page_bytes)
		return (struct lw_scan_cut){ 0, 0 };
	return (struct lw_scan_cut){ start, start + heap->bytes };
}

/* The extent of the allocator's memory around a block. */
static struct lw_scan_cut around(const struct lw_maps *maps, uintptr_t block, uint64_t bytes, bool is_glibc)
{
	struct lw_scan_cut pages = { block & ~(page_bytes - 1), LW_ALIGN_UP(block + (bytes ? bytes : 1), page_bytes) };
	const struct lw_map *map = lw_maps_at(maps, block);
	const uint64_t *head = (const uint64_t *)(block - CHUNK_HEAD_BYTES);
	struct lw_scan_cut cut = { 0, 0 };

	if (!is_glibc || !map || block < map->start)
		return pages;
	if (map->flags & LW_MAP_BRK)
		return (struct lw_scan_cut){ map->start, map->end };
	if (!is_readable(maps, block - CHUNK_HEAD_BYTES, block))
		return pages;
	if (head[1] & CHUNK_IS_MAPPED)
		cut = mapped_chunk(block, bytes, head);
	else if (head[1] & CHUNK_IS_FOREIGN)
		cut = arena_heap(maps, block);
	return cut.end ? cut : pages;
}

static void cut_blocks(struct lw_scan_roots *roots, const struct lw_scan_marks *marks)
{
	struct lw_scan_cut last = { 0, 0 };

	for (uint64_t i = 0; i < marks->index.nr; i++) {
		uintptr_t block = lw_scan_start(&marks->index.entries[i]);

		if (block >= last.start && block < last.end && block + lw_scan_bytes(&marks->index.entries[i]) <= last.end)
			continue;
		last = around(&marks->maps, block, lw_scan_bytes(&marks->index.entries[i]), roots->is_glibc);
		lw_scan_cut(&roots->cuts, last.start, last.end);
	}
}

/* ---- ours ---- */

static void cut_own(void *context, uintptr_t start, uintptr_t end)
{
	lw_scan_cut(context, start, LW_ALIGN_UP(end, page_bytes));
}

/* Our variables are no roots; but what the program allocated before we knew its allocator lies there too. */
static void cut_ours(struct lw_scan_cuts *cuts, const struct lw_maps *maps)
{
	uintptr_t early = (uintptr_t)lw_early_arena;
	struct dl_find_object self;

	(void)lw_mem_visit(cut_own, cuts);
	lw_scan_cut(cuts, (uintptr_t)lw_box, (uintptr_t)lw_box + lw_own.total_bytes);
	lw_scan_cut(cuts, (uintptr_t)maps->maps, (uintptr_t)maps->maps + LW_MAPS_MAX * sizeof(*maps->maps));
	lw_scan_cut(cuts, (uintptr_t)maps->text, (uintptr_t)maps->text + LW_MAPS_TEXT_BYTES);
	for (size_t i = 0; i < maps->nr; i++) {
		if (maps->maps[i].flags & LW_MAP_OWN)
			lw_scan_cut(cuts, maps->maps[i].start, maps->maps[i].end);
	}
	if (_dl_find_object(lw_early_arena, &self))
		return;
	lw_scan_cut(cuts, (uintptr_t)self.dlfo_map_start, early);
	lw_scan_cut(cuts, early + LW_EARLY_BYTES, (uintptr_t)self.dlfo_map_end);
}

/* ---- allocators of unknown habits ---- */

static bool is_pool(const struct lw_map *map)
{
	const uint32_t no = LW_MAP_FILE | LW_MAP_SHARED | LW_MAP_MAIN_STACK | LW_MAP_SPECIAL | LW_MAP_OWN;

	return (map->flags & (LW_MAP_READ | LW_MAP_WRITE | no)) == (LW_MAP_READ | LW_MAP_WRITE);
}

static void add_tables(void *context, uintptr_t start, uintptr_t end)
{
	lw_scan_index_add(context, start, end - start, 0, LW_SCAN_UNJUDGED | LW_SCAN_UNOWNED | LW_SCAN_TABLES);
}

static void add_unowned(void *context, uintptr_t start, uintptr_t end)
{
	lw_scan_index_add(context, start, end - start, 0, LW_SCAN_UNJUDGED | LW_SCAN_UNOWNED);
}

/* What lies between the blocks in the pages that were cut out. */
static bool add_between(const struct lw_scan_roots *roots, struct lw_scan_marks *marks)
{
	uint64_t nr = marks->index.nr, at = 0;

	for (size_t i = 0; i < roots->cuts.nr; i++) {
		uintptr_t from = roots->cuts.cuts[i].start, end = roots->cuts.cuts[i].end;

		while (at < nr && lw_scan_start(&marks->index.entries[at]) < from)
			at++;
		for (; at < nr && lw_scan_start(&marks->index.entries[at]) < end; at++) {
			const struct lw_scan_entry *block = &marks->index.entries[at];
			uintptr_t start = lw_scan_start(block), past = start + lw_scan_bytes(block);

			if (start >= from + LEAST_GAP_BYTES)
				add_tables(&marks->index, from, start - 8);
			from = past >= from ? LW_ALIGN_UP(past + 1, (uintptr_t)8) : from; /* past a block of no size, too */
		}
		/* a cut without a block is ours, or a dead stack */
		if (at && lw_scan_start(&marks->index.entries[at - 1]) >= roots->cuts.cuts[i].start &&
				end >= from + LEAST_GAP_BYTES)
			add_tables(&marks->index, from, end);
	}
	return lw_scan_index_sort(&marks->index);
}

static bool add_gaps(struct lw_scan_roots *roots, struct lw_scan_marks *marks)
{
	size_t next = 0;

	if (!add_between(roots, marks))
		return false;
	for (size_t i = 0; i < marks->maps.nr; i++) {
		const struct lw_map *map = &marks->maps.maps[i];

		if (!roots->is_glibc && is_pool(map))
			lw_scan_cuts_rest(&roots->cuts, &next, map->start, map->end,
					map->flags & LW_MAP_BRK ? add_tables : add_unowned, &marks->index);
	}
	return lw_scan_index_sort(&marks->index);
}

/* ---- the two calls ---- */

bool lw_scan_roots_find(struct lw_scan_roots *roots, struct lw_scan_marks *marks)
{
	if (!lw_scan_cuts_init(&roots->cuts))
		return false;
	cut_blocks(roots, marks);
	cut_ours(&roots->cuts, &marks->maps);
	lw_scan_cut(&roots->cuts, roots->list.start, roots->list.end);
	lw_scan_cut(&roots->cuts, roots->vectors.start, roots->vectors.end);
	if (!roots->is_glibc)
		lw_scan_cut(&roots->cuts, roots->allocator_start, LW_ALIGN_UP(roots->allocator_end, page_bytes));
	roots->nr_unknown_stacks = lw_scan_stacks_cut(&marks->maps, &roots->threads, &roots->cuts);
	lw_scan_cuts_sort(&roots->cuts);
	return (roots->is_glibc && !roots->has_unseen) || add_gaps(roots, marks);
}

static void mark_stretch(void *context, uintptr_t from, uintptr_t to)
{
	lw_scan_mark_range(context, from, to);
}

static void mark_allocator(void *context, uintptr_t from, uintptr_t to)
{
	((struct lw_scan_marks *)context)->is_allocator = true;
	lw_scan_mark_range(context, from, to);
}

struct piece {
	struct lw_scan_marks *marks;
	bool is_allocator;
};

static void mark_piece(void *context, uintptr_t start, uintptr_t end)
{
	const struct piece *piece = context;

	lw_maps_visit(&piece->marks->maps, start, end, piece->is_allocator ? mark_allocator : mark_stretch, piece->marks);
}

/* Read-only memory counts where it is private: it may have been made read-only after it was filled. */
static bool is_root(const struct lw_map *map, bool is_glibc)
{
	if (!(map->flags & LW_MAP_READ) || map->flags & (LW_MAP_DEVICE | LW_MAP_SPECIAL | LW_MAP_OWN))
		return false;
	if (map->flags & LW_MAP_SHARED)
		return map->flags & LW_MAP_WRITE;
	return is_glibc || !is_pool(map);
}

struct seek {
	const struct lw_maps *maps;
	lw_maps_visit_fn *visit;
	void *context;
};

static void seek_piece(void *context, uintptr_t start, uintptr_t end)
{
	const struct seek *seek = context;

	lw_maps_visit(seek->maps, start, end, seek->visit, seek->context);
}

static void mark_thread(struct lw_scan_marks *marks, const struct lw_scan_thread *thread)
{
	lw_scan_mark_word(marks, thread->sp);
	for (uint32_t i = 0; i < thread->nr_regs; i++)
		lw_scan_mark_word(marks, thread->regs[i]);
}

void lw_scan_roots_visit(const struct lw_scan_roots *roots, const struct lw_maps *maps, lw_maps_visit_fn *visit,
		void *context)
{
	struct seek seek = { maps, visit, context };
	size_t next = 0;

	for (size_t i = 0; i < maps->nr; i++) {
		if (is_root(&maps->maps[i], roots->is_glibc))
			lw_scan_cuts_rest(&roots->cuts, &next, maps->maps[i].start, maps->maps[i].end, seek_piece, &seek);
	}
}

void lw_scan_roots_mark(struct lw_scan_roots *roots, struct lw_scan_marks *marks)
{
	size_t next = 0;

	marks->phase = LW_SCAN_REACHING;
	lw_scan_mark_word(marks, roots->threads.descriptor);
	for (size_t i = 0; i < roots->threads.nr_known; i++)
		mark_thread(marks, &roots->threads.known[i]);
	lw_maps_visit(&marks->maps, roots->vectors.start, roots->vectors.end, mark_stretch, marks);
	for (size_t i = 0; i < marks->maps.nr; i++) {
		const struct lw_map *map = &marks->maps.maps[i];
		struct piece piece = { marks, roots->is_glibc && map->start >= roots->allocator_start &&
						      map->start < roots->allocator_end };

		if (is_root(map, roots->is_glibc))
			lw_scan_cuts_rest(&roots->cuts, &next, map->start, map->end, mark_piece, &piece);
	}
	lw_scan_mark_rest(marks);
}
