/* SPDX-License-Identifier: MIT */
/*
 * scan_stacks.c - finding stacks and their owners in a copy of the process; see scan_stacks.h.
 *
 * The layout of struct pthread is glibc's own affair, so nothing of it is assumed but the head, which
 * is part of the ABI compilers rely on (self at 16, stack guard at 0x28, pointer guard at 0x30).
 * The place of the thread number is looked for in a descriptor whose number is known; a stack's
 * extent stands in three neighbouring words (block, size, guard) that must fit the maps. What does not fit is
 * left alone: then the whole stack counts as root, which hides and never accuses.
 */
#include "preload/live/scan_stacks.h"

#include "preload/base/sys.h"

enum {
	DESCRIPTOR_ALIGN = 64,
	DESCRIPTOR_BYTES = 4096,  /* more than any glibc's struct pthread */
	SELF_AT = 2,		  /* words */
	STACK_GUARD_AT = 5,
	POINTER_GUARD_AT = 6,
	TID_FROM = 0x200,
	TID_TO = 0x400,
};

static const uintptr_t page_bytes = 4096;

struct search {
	const struct lw_scan_threads *threads;
	struct lw_scan_cuts *cuts;
	const struct lw_map *map;
	size_t tid_at;
	unsigned nr_unknown;
	bool has_guard; /* the stack found last was made by libc: it has libc's guard */
};

static const uint64_t *words_at(uintptr_t at)
{
	return (const uint64_t *)at;
}

/* Where descriptors keep their thread's number; 0 if it cannot be told. */
static size_t find_tid_place(const struct lw_scan_threads *threads)
{
	for (size_t at = TID_FROM; threads->tid && at < TID_TO; at += sizeof(int32_t)) {
		if (*(const int32_t *)(threads->descriptor + at) == threads->tid)
			return at;
	}
	return 0;
}

static bool is_descriptor(const struct search *search, uintptr_t at)
{
	const uint64_t *here = words_at(at), *known = words_at(search->threads->descriptor);

	return here[0] == at && here[SELF_AT] == at && here[STACK_GUARD_AT] == known[STACK_GUARD_AT] &&
	       here[POINTER_GUARD_AT] == known[POINTER_GUARD_AT];
}

/* The stack a descriptor stands on: start of the usable part; 0: it is not told. */
static uintptr_t find_stack(struct search *search, uintptr_t descriptor, uintptr_t *end)
{
	uintptr_t last = search->map->end < descriptor + DESCRIPTOR_BYTES ? search->map->end
									  : descriptor + DESCRIPTOR_BYTES;

	for (uintptr_t at = descriptor + TID_TO; at + 3 * sizeof(uint64_t) <= last; at += sizeof(uint64_t)) {
		uint64_t block = words_at(at)[0], size = words_at(at)[1], guard = words_at(at)[2];

		if (block % page_bytes || !block || block >= descriptor || guard >= size || size > search->map->end)
			continue;
		if (block + size <= descriptor || block + size > LW_ALIGN_UP(descriptor + DESCRIPTOR_BYTES, page_bytes))
			continue;
		if (block + guard < search->map->start || block + size > search->map->end)
			continue;
		*end = block + size;
		search->has_guard = guard > 0;
		return block + guard;
	}
	return 0;
}

static uintptr_t sp_of(const struct search *search, int32_t tid)
{
	for (size_t i = 0; i < search->threads->nr_known; i++) {
		if (search->threads->known[i].tid == tid)
			return search->threads->known[i].sp;
	}
	return 0;
}

static void cut_locals(const struct search *search, uintptr_t descriptor)
{
	uintptr_t at = descriptor + (uintptr_t)search->threads->locals_at;

	lw_scan_cut(search->cuts, at, at + search->threads->locals_bytes);
}

static void judge(struct search *search, uintptr_t descriptor)
{
	int32_t tid = *(const int32_t *)(descriptor + search->tid_at);
	bool is_alive = tid > 0;
	uintptr_t sp = is_alive ? sp_of(search, tid) : 0, end, start = find_stack(search, descriptor, &end);

	if (is_alive)
		cut_locals(search, descriptor);
	/* a stack that the program gave the thread is the program's again */
	if (!is_alive && start && search->has_guard)
		lw_scan_cut(search->cuts, start, end);
	else if (is_alive && start && sp >= start && sp < end)
		lw_scan_cut(search->cuts, start, sp);
	else if (is_alive && !sp)
		search->nr_unknown++;
}

static void look(void *context, uintptr_t from, uintptr_t to)
{
	struct search *search = context;

	for (uintptr_t at = LW_ALIGN_UP(from, (uintptr_t)DESCRIPTOR_ALIGN); at + DESCRIPTOR_ALIGN <= to; at += DESCRIPTOR_ALIGN) {
		if (*words_at(at) == at && is_descriptor(search, at) && at + TID_TO <= search->map->end)
			judge(search, at);
	}
}

/* Thread stacks are private, have no file and lie above a guard. */
static bool is_candidate(const struct lw_maps *maps, const struct lw_map *map)
{
	const uint32_t no = LW_MAP_FILE | LW_MAP_SHARED | LW_MAP_MAIN_STACK | LW_MAP_BRK | LW_MAP_OWN | LW_MAP_SPECIAL;

	return map > maps->maps && (map->flags & (LW_MAP_READ | LW_MAP_WRITE | no)) == (LW_MAP_READ | LW_MAP_WRITE) &&
	       map[-1].end == map->start && !(map[-1].flags & LW_MAP_READ);
}

/* The main thread may leave before the others; the kernel clears its number then. */
static bool is_main_gone(const struct search *search)
{
	return search->tid_at && search->threads->main_descriptor &&
	       *(const int32_t *)(search->threads->main_descriptor + search->tid_at) == 0;
}

unsigned lw_scan_stacks_cut(const struct lw_maps *maps, const struct lw_scan_threads *threads,
		struct lw_scan_cuts *cuts)
{
	struct search search = { .threads = threads, .cuts = cuts };
	uintptr_t main_sp;

	search.tid_at = find_tid_place(threads);
	main_sp = sp_of(&search, threads->main_tid);
	cut_locals(&search, threads->descriptor);
	if (threads->main_descriptor)
		cut_locals(&search, threads->main_descriptor);
	for (const struct lw_map *map = maps->maps; map < maps->maps + maps->nr; map++) {
		search.map = map;
		if (map->flags & LW_MAP_MAIN_STACK) {
			if (main_sp >= map->start && main_sp < map->end)
				lw_scan_cut(cuts, map->start, main_sp);
			search.nr_unknown += !main_sp && !is_main_gone(&search);
		} else if (search.tid_at && is_candidate(maps, map)) {
			lw_maps_visit(maps, map->start, map->end, look, &search);
		}
	}
	return search.nr_unknown;
}
