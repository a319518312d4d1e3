/* SPDX-License-Identifier: MIT */
/*
 * scan_index.h - the live blocks as the scanner sees them: sorted, with room for marks, and a way
 * from any address to the block it lies in.
 *
 * An entry is two words: start (47 bits) with marks above it, size (44 bits) with the site above
 * it. Stretches of address space know the first block that touches them, so an address is found by two
 * loads and a short walk. They are as long as a few blocks are on average, 512 bytes at least. 16 bytes a
 * block, 4 a stretch.
 *
 * Belongs to the scanner: lives in its own copy of the memory, takes no lock, makes raw system
 * calls only, never gives anything back.
 */
#ifndef LW_LIVE_SCAN_INDEX_H
#define LW_LIVE_SCAN_INDEX_H

#include "preload/base/base.h"
#include "preload/live/scan_words.h"

enum {
	LW_SCAN_ADDRESS_BITS = 47,
	LW_SCAN_SITE_AT = 44,
	LW_SCAN_REGION_BITS = 24,
	LW_SCAN_LEAST_STRETCH = 9, /* log2 of bytes */
	LW_SCAN_MOST_STRETCH = 14,
	LW_SCAN_LEAST_REACH = 7, /* a pointer to a smaller block may carry three tag bits all the same */
};

#define LW_SCAN_ADDRESS ((UINT64_C(1) << LW_SCAN_ADDRESS_BITS) - 1)
#define LW_SCAN_BYTES ((UINT64_C(1) << LW_SCAN_SITE_AT) - 1)

/* Marks; in the start word. */
#define LW_SCAN_REACHED (UINT64_C(1) << 48)
#define LW_SCAN_INDIRECT (UINT64_C(1) << 49) /* something lost points to it */
#define LW_SCAN_LEADER (UINT64_C(1) << 50)   /* lost, and nothing lost points to it */
#define LW_SCAN_DRAGGED (UINT64_C(1) << 51)  /* counted for a leader */
#define LW_SCAN_UNJUDGED (UINT64_C(1) << 52) /* has no verdict: a parent process's */
#define LW_SCAN_UNOWNED (UINT64_C(1) << 54)  /* memory between blocks; unjudged too */
#define LW_SCAN_TABLES (UINT64_C(1) << 55)   /* unowned, and the allocator's for sure */
#define LW_SCAN_WANTED (UINT64_C(1) << 56)   /* whatever points to it is looked for */
#define LW_SCAN_BARE (UINT64_C(1) << 57)     /* holds no pointers: a buffer of stdio */

struct lw_scan_entry {
	uint64_t start; /* address | marks */
	uint64_t what;	/* bytes | site */
};

struct lw_scan_index {
	struct lw_scan_entry *entries;
	uint64_t nr, max;
	uint64_t lo, span;  /* no block has an address outside [lo, lo + span) */
	struct lw_words words; /* nor outside of these */
	uint32_t *regions;  /* by address / 16 MiB: 0 none, number of a table + 1, or a single block */
	uint32_t *tables;
	uint32_t stretch_bits;
	uint64_t used_bytes;
	bool is_full;	    /* there was no memory for all */
};

LW_INLINE uint64_t lw_scan_start(const struct lw_scan_entry *entry)
{
	return entry->start & LW_SCAN_ADDRESS;
}

LW_INLINE uint64_t lw_scan_bytes(const struct lw_scan_entry *entry)
{
	return entry->what & LW_SCAN_BYTES;
}

LW_INLINE uint32_t lw_scan_site(const struct lw_scan_entry *entry)
{
	return (uint32_t)(entry->what >> LW_SCAN_SITE_AT);
}

/* Untouched pages; NULL: none to be had. Counted in *used_bytes by what will be touched, so not here. */
void *lw_scan_room(uint64_t bytes);
/* The same where most of it will stay untouched: in no huge page, whatever its size. */
void *lw_scan_sparse_room(uint64_t bytes);

/* Gives back all that lw_scan_room() and the index took: where the memory is not the scanner's own. */
void lw_scan_rooms_free(void);

/* Blocks may come in any order; in the order of addresses they come cheapest. */
void lw_scan_index_add(struct lw_scan_index *index, uint64_t start, uint64_t bytes, uint32_t site,
		uint64_t marks);

/* After the last block: sorts, and makes the ways. False: no memory. */
bool lw_scan_index_sort(struct lw_scan_index *index);
bool lw_scan_index_finish(struct lw_scan_index *index);

#define LW_SCAN_NOTHING UINT32_MAX
#define LW_SCAN_SINGLE (UINT32_C(1) << 31)

/* Where the search for an address begins, in two steps that each may miss the cache; then the search itself. */
LW_INLINE const uint32_t *lw_scan_index_stretch(const struct lw_scan_index *index, uint64_t address)
{
	uint64_t stretch = (address & ((UINT64_C(1) << LW_SCAN_REGION_BITS) - 1)) >> index->stretch_bits;
	uint32_t region = index->regions[address >> LW_SCAN_REGION_BITS];

	if (!region || region & LW_SCAN_SINGLE)
		return NULL;
	return &index->tables[((uint64_t)(region - 1) << (LW_SCAN_REGION_BITS - index->stretch_bits)) + stretch];
}

LW_INLINE uint32_t lw_scan_index_first(const struct lw_scan_index *index, uint64_t address)
{
	const uint32_t *stretch = lw_scan_index_stretch(index, address);
	uint32_t region;

	if (stretch)
		return *stretch - 1; /* 0, nothing, wraps around to LW_SCAN_NOTHING */
	region = index->regions[address >> LW_SCAN_REGION_BITS];
	return region ? region & ~LW_SCAN_SINGLE : LW_SCAN_NOTHING;
}

LW_INLINE uint32_t lw_scan_index_search(const struct lw_scan_index *index, uint32_t at, uint64_t address)
{
	uint64_t reach;

	if (at == LW_SCAN_NOTHING)
		return at;
	while (at + 1 < index->nr && lw_scan_start(&index->entries[at + 1]) <= address)
		at++;
	reach = lw_scan_bytes(&index->entries[at]);
	reach = reach < LW_SCAN_LEAST_REACH ? LW_SCAN_LEAST_REACH : reach;
	/* an address below the first block of a stretch wraps around */
	return address - lw_scan_start(&index->entries[at]) <= reach ? at : LW_SCAN_NOTHING;
}

/* The block an address lies in, or is one past the end of; lo and span were looked at by the caller. */
LW_INLINE uint32_t lw_scan_index_find(const struct lw_scan_index *index, uint64_t address)
{
	return lw_scan_index_search(index, lw_scan_index_first(index, address), address);
}

#endif
