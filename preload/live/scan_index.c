/* SPDX-License-Identifier: MIT */
/* scan_index.c - building the sorted list of blocks and the ways into it; see scan_index.h. */
#include "preload/live/scan_index.h"

#include <string.h>
#include <sys/mman.h>

#include "preload/base/sys.h"

enum { FIRST_ENTRIES = 4096, BLOCKS_A_STRETCH = 8, HUGE_BYTES = 16 << 20, SMALL_PAGES_BYTES = 2 << 20 };

static const uint64_t many_entries = UINT64_C(1) << 27; /* 2 GiB of addresses */

static const uint64_t region_bytes = UINT64_C(1) << LW_SCAN_REGION_BITS;
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

static bool grow(struct lw_scan_index *index)
{
	uint64_t more = index->max ? index->max * 2 : FIRST_ENTRIES, size = sizeof(*index->entries);
	long at;

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

void lw_scan_index_add(struct lw_scan_index *index, uint64_t start, uint64_t bytes, uint32_t site,
		uint64_t marks)
{
	if (index->nr >= max_entries || (index->nr == index->max && !grow(index))) {
		index->is_full = true;
		return;
	}
	bytes = bytes < LW_SCAN_BYTES ? bytes : LW_SCAN_BYTES;
	index->entries[index->nr++] = (struct lw_scan_entry){ start | marks, bytes | (uint64_t)site << LW_SCAN_SITE_AT };
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
	uint64_t sorted;

	if (!index->nr)
		return !index->is_full;
	for (sorted = run_of(index, 0); sorted < index->nr;) {
		uint64_t end = sorted + run_of(index, sorted);

		if (!merge(index, sorted, end))
			return false;
		sorted = end;
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

static bool is_whole(uint64_t region, uint64_t start, uint64_t last)
{
	return start <= region << LW_SCAN_REGION_BITS && last >= ((region + 1) << LW_SCAN_REGION_BITS) - 1;
}

/* Tables there will be: regions with a block that does not fill them alone. */
static uint64_t count_tables(const struct lw_scan_index *index)
{
	uint64_t next = 0, nr = 0;

	for (uint64_t i = 0; i < index->nr; i++) {
		uint64_t start = lw_scan_start(&index->entries[i]), last = last_of(&index->entries[i]);
		uint64_t region = start >> LW_SCAN_REGION_BITS, end = (last >> LW_SCAN_REGION_BITS) + 1;

		for (region = region < next ? next : region; region < end; region++)
			nr += !is_whole(region, start, last);
		next = end > next ? end : next;
	}
	return nr;
}

static uint64_t stretches(const struct lw_scan_index *index)
{
	return UINT64_C(1) << (LW_SCAN_REGION_BITS - index->stretch_bits);
}

/* Some blocks a stretch, so that the tables stay small beside the list. */
static void choose_stretch(struct lw_scan_index *index, uint64_t nr_tables)
{
	index->stretch_bits = LW_SCAN_LEAST_STRETCH;
	while (index->stretch_bits < LW_SCAN_MOST_STRETCH &&
			nr_tables * stretches(index) * BLOCKS_A_STRETCH > index->nr)
		index->stretch_bits++;
}

static void enter_stretches(struct lw_scan_index *index, uint64_t i, uint64_t region, uint64_t from, uint64_t last)
{
	uint32_t *table = index->tables + (index->regions[region] - 1) * stretches(index);
	uint64_t base = region << LW_SCAN_REGION_BITS;
	uint64_t stretch = (from < base ? 0 : from - base) >> index->stretch_bits;
	uint64_t end = last - base >= region_bytes ? stretches(index) - 1 : (last - base) >> index->stretch_bits;

	for (; stretch <= end; stretch++) {
		if (!table[stretch])
			table[stretch] = (uint32_t)i + 1;
	}
}

static void enter(struct lw_scan_index *index, uint64_t i, uint32_t *nr_tables)
{
	uint64_t start = lw_scan_start(&index->entries[i]), last = last_of(&index->entries[i]);

	for (uint64_t region = start >> LW_SCAN_REGION_BITS; region <= last >> LW_SCAN_REGION_BITS; region++) {
		if (!index->regions[region])
			index->regions[region] = is_whole(region, start, last) ? (uint32_t)i | LW_SCAN_SINGLE
									       : ++*nr_tables;
		if (!(index->regions[region] & LW_SCAN_SINGLE))
			enter_stretches(index, i, region, start, last);
	}
}

bool lw_scan_index_finish(struct lw_scan_index *index)
{
	uint64_t nr_tables = count_tables(index), regions_max = UINT64_C(1) << (LW_SCAN_ADDRESS_BITS - LW_SCAN_REGION_BITS);
	uint32_t nr = 0;

	index->regions = lw_scan_sparse_room(regions_max * sizeof(*index->regions));
	choose_stretch(index, nr_tables);
	index->tables = lw_scan_room((nr_tables + 1) * stretches(index) * sizeof(*index->tables));
	if (!index->regions || !index->tables)
		return false;
	for (uint64_t i = 0; i < index->nr; i++)
		enter(index, i, &nr);
	for (uint64_t i = 0; i < index->nr; i++)
		lw_words_add(&index->words, lw_scan_start(&index->entries[i]), last_of(&index->entries[i]));
	lw_words_look(&index->words);
	if (index->nr) {
		index->lo = lw_scan_start(&index->entries[0]);
		index->span = last_of(&index->entries[index->nr - 1]) + 1 - index->lo;
	}
	index->used_bytes = index->nr * sizeof(*index->entries) + nr_tables * stretches(index) * sizeof(*index->tables);
	return true;
}
