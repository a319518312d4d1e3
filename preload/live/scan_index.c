/* SPDX-License-Identifier: MIT */
/* scan_index.c - building the sorted list of blocks and the ways into it; see scan_index.h. */
#include "preload/live/scan_index.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/base/sys.h"

enum {
	FIRST_ENTRIES = 4096,
	TWO_BLOCKS_BYTES = 3, /* of the tables, at most, where they need not be finer */
	HUGE_BYTES = 16 << 20,
	SMALL_PAGES_BYTES = 2 << 20,
};

static const uint64_t many_entries = UINT64_C(1) << 27; /* 2 GiB of addresses */

/* What was mapped; more is not, of what stays. */
static struct room {
	long at;
	uint64_t bytes;
} rooms[32];
static uint32_t nr_rooms;

static const uint64_t max_entries = LW_SCAN_SINGLE - 1;

static void note_room(long at, uint64_t bytes)
{
	if (nr_rooms < LW_ARRAY_LENGTH(rooms))
		rooms[nr_rooms++] = (struct room){ at, LW_ALIGN_UP(bytes, UINT64_C(4096)) };
}

void lw_scan_rooms_free(void)
{
	while (nr_rooms) {
		nr_rooms--;
		(void)lw_syscall(SYS_munmap, rooms[nr_rooms].at, rooms[nr_rooms].bytes);
	}
}

void *lw_scan_sparse_room(uint64_t bytes)
{
	long at = lw_syscall(SYS_mmap, 0, LW_ALIGN_UP(bytes, UINT64_C(4096)), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (lw_sys_failed(at))
		return NULL;
	note_room(at, bytes);
	(void)lw_syscall(SYS_madvise, at, bytes, MADV_NOHUGEPAGE);
	return (void *)at;
}

void *lw_scan_room(uint64_t bytes)
{
	void *room = lw_scan_sparse_room(bytes);

	if (room && bytes >= HUGE_BYTES) /* looked at in no order: fewer misses of the TLB */
		(void)lw_syscall(SYS_madvise, room, bytes, MADV_HUGEPAGE);
	return room;
}

/* Room for more than there will be; huge pages behind the first, which is all that most need. */
static void *reserve(uint64_t bytes)
{
	long at = lw_syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (lw_sys_failed(at))
		return NULL;
	note_room(at, bytes);
	(void)lw_syscall(SYS_madvise, at, SMALL_PAGES_BYTES, MADV_NOHUGEPAGE);
	(void)lw_syscall(SYS_madvise, at + SMALL_PAGES_BYTES, bytes - SMALL_PAGES_BYTES, MADV_HUGEPAGE);
	return (void *)at;
}

bool lw_scan_index_grow(struct lw_scan_index *index)
{
	uint64_t more = index->max ? index->max * 2 : FIRST_ENTRIES, size = sizeof(*index->entries);
	long at;

	if (index->max == max_entries)
		return false;
	more = more < max_entries ? more : max_entries;
	if (!index->max) {
		index->entries = reserve(many_entries * size);
		more = index->entries ? many_entries : more;
		if (!index->entries)
			index->entries = lw_scan_room(more * size);
		if (!index->entries)
			return false;
	} else {
		at = lw_syscall(SYS_mremap, index->entries, index->max * size, more * size, MREMAP_MAYMOVE, 0);
		if (lw_sys_failed(at))
			return false;
		index->entries = (struct lw_scan_entry *)at;
	}
	index->max = more;
	return true;
}

/* How many entries from `from` on stand in order. */
static uint64_t run_of(const struct lw_scan_index *index, uint64_t from)
{
	uint64_t at = from + 1;

	while (at < index->nr && lw_scan_start(&index->entries[at - 1]) <= lw_scan_start(&index->entries[at]))
		at++;
	return at - from;
}

/* Merges [0, middle) and [middle, end): the second, which is the shorter as a rule, is moved aside. */
static bool merge(struct lw_scan_index *index, uint64_t middle, uint64_t end)
{
	uint64_t nr_aside = end - middle, left = middle, to = end, bytes = nr_aside * sizeof(*index->entries);
	struct lw_scan_entry *all = index->entries, *aside = lw_scan_room(bytes);

	if (!aside)
		return false;
	memcpy(aside, all + middle, bytes);
	while (nr_aside) {
		bool is_left = left && lw_scan_start(&all[left - 1]) > lw_scan_start(&aside[nr_aside - 1]);

		all[--to] = is_left ? all[--left] : aside[--nr_aside];
	}
	(void)lw_syscall(SYS_munmap, aside, LW_ALIGN_UP(bytes, UINT64_C(4096)));
	if (nr_rooms && rooms[nr_rooms - 1].at == (long)aside)
		nr_rooms--;
	return true;
}

/* The table of blocks is visited in few ascending runs, so merging them one after the other is cheap. */
bool lw_scan_index_sort(struct lw_scan_index *index)
{
	while (index->nr_sorted < index->nr) {
		uint64_t end = index->nr_sorted + run_of(index, index->nr_sorted);

		if (!merge(index, index->nr_sorted, end))
			return false;
		index->nr_sorted = end;
	}
	return !index->is_full;
}

/* How far a pointer to this block may point: its end included. */
static uint64_t last_of(const struct lw_scan_entry *entry)
{
	uint64_t bytes = lw_scan_bytes(entry), last;

	last = lw_scan_start(entry) + (bytes < LW_SCAN_LEAST_REACH ? LW_SCAN_LEAST_REACH : bytes);
	return last < LW_SCAN_ADDRESS ? last : LW_SCAN_ADDRESS;
}

static uint64_t region_of(const struct lw_scan_entry *entry)
{
	return lw_scan_start(entry) >> LW_SCAN_REGION_BITS;
}

/*
 * Of the regions in which a block begins: there will be a table for each. On the way notes the spans of the blocks, and
 * in *low_bits which low bits any of them has; all, if two begin at one place.
 */
static uint64_t count_tables(struct lw_scan_index *index, uint64_t *low_bits)
{
	uint64_t last_region = UINT64_MAX, nr = 0, noted = 0, last_start = 0;

	for (uint64_t i = 0; i < index->nr; i++) {
		uint64_t start = lw_scan_start(&index->entries[i]), last = last_of(&index->entries[i]);

		*low_bits |= start == last_start ? UINT64_MAX : start;
		last_start = start;
		nr += start >> LW_SCAN_REGION_BITS != last_region;
		last_region = start >> LW_SCAN_REGION_BITS;
		if (last >> LW_WORDS_UNIT_BITS != noted || start >> LW_WORDS_UNIT_BITS != noted)
			lw_words_add(&index->words, start, last);
		noted = last >> LW_WORDS_UNIT_BITS;
	}
	return nr;
}

static uint64_t stretches(const struct lw_scan_index *index)
{
	return UINT64_C(1) << (LW_SCAN_REGION_BITS - index->stretch_bits);
}

static void choose_stretch(struct lw_scan_index *index, uint64_t nr_tables)
{
	index->stretch_bits = LW_SCAN_LEAST_STRETCH;
	while (index->stretch_bits < LW_SCAN_MOST_STRETCH &&
			nr_tables * stretches(index) * sizeof(*index->tables) * 2 > index->nr * TWO_BLOCKS_BYTES)
		index->stretch_bits++;
}

/* Where a block ends in other regions than it begins in, and none begins there, it alone is met. */
static void enter_reach(struct lw_scan_index *index, uint64_t at)
{
	uint64_t last = last_of(&index->entries[at]) >> LW_SCAN_REGION_BITS;

	for (uint64_t region = region_of(&index->entries[at]) + 1; region <= last; region++)
		index->regions[region] = (uint32_t)at | LW_SCAN_SINGLE;
}

/* The table of the region that entry `first` is the first to begin in; returns the entry after the last. */
static uint64_t fill_table(struct lw_scan_index *index, uint64_t *table, uint64_t first)
{
	const uint32_t granule_bits = index->stretch_bits - LW_SCAN_GRANULES_BITS;
	uint64_t region = region_of(&index->entries[first]), at = first, known = 0, end = stretches(index);

	for (; at < index->nr && region_of(&index->entries[at]) == region; at++) {
		uint64_t start = lw_scan_start(&index->entries[at]);
		uint64_t stretch = start >> index->stretch_bits & (end - 1);

		for (; known <= stretch; known++)
			table[known] = at << 32;
		table[stretch] |= UINT64_C(1) << (start >> granule_bits & 31);
		if (LW_UNLIKELY(last_of(&index->entries[at]) >> LW_SCAN_REGION_BITS != region))
			enter_reach(index, at);
	}
	for (; known < end; known++)
		table[known] = at << 32;
	return at;
}

static void fill_tables(struct lw_scan_index *index)
{
	uint32_t nr = 0;

	for (uint64_t at = 0, next; at < index->nr; at = next) {
		next = fill_table(index, index->tables + nr * stretches(index), at);
		index->regions[region_of(&index->entries[at])] = ++nr;
	}
}

bool lw_scan_index_finish(struct lw_scan_index *index)
{
	uint64_t low_bits = 0, nr_tables = count_tables(index, &low_bits), regions_max = UINT64_C(1) << (LW_SCAN_ADDRESS_BITS - LW_SCAN_REGION_BITS);

	index->regions = lw_scan_sparse_room(regions_max * sizeof(*index->regions));
	choose_stretch(index, nr_tables);
	index->is_exact = !(low_bits & ((UINT64_C(1) << (index->stretch_bits - LW_SCAN_GRANULES_BITS)) - 1));
	index->tables = lw_scan_room((nr_tables + 1) * stretches(index) * sizeof(*index->tables));
	if (!index->regions || !index->tables)
		return false;
	fill_tables(index);
	lw_words_look(&index->words);
	if (index->nr) {
		index->lo = lw_scan_start(&index->entries[0]);
		index->span = last_of(&index->entries[index->nr - 1]) + 1 - index->lo;
	}
	index->used_bytes = index->nr * sizeof(*index->entries) + nr_tables * stretches(index) * sizeof(*index->tables);
	return true;
}
