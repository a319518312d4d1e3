/* SPDX-License-Identifier: MIT */
/*
 * scan_index.h - the live blocks as the scanner sees them: sorted, with room for marks, and a way
 * from any address to the block it lies in.
 *
 * An entry is two words: start (47 bits) with marks above it, size (44 bits) with the site above it. 16 bytes a block.
 *
 * Address space is divided into granules, of 16 bytes where the blocks are small, and 32 of them make a stretch. Of
 * each stretch it is known how many blocks begin before it, and in which granules any begin: one load and a count of
 * bits say which block is the last that begins at or below an address. Only where several begin in
 * one granule is there a step or two left to go. 8 bytes a stretch, at most 1.5 a block.
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
	LW_SCAN_GRANULES_BITS = 5, /* log2 of the granules of a stretch */
	LW_SCAN_LEAST_STRETCH = 9, /* log2 of bytes */
	LW_SCAN_MOST_STRETCH = 15,
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
#define LW_SCAN_LINKED (UINT64_C(1) << 58)   /* what it points to is known: see scan_link.h */
#define LW_SCAN_PAIR (UINT64_C(1) << 59)     /* two blocks; the second in parents[] until it is reached */
#define LW_SCAN_LATER (UINT64_C(1) << 60)    /* was met when the queue was full: see scan_mark.c */

struct lw_scan_entry {
	uint64_t start; /* address | marks */
	uint64_t what;	/* bytes | site; of a linked block: bytes, 12 bits | the entry it points to, 32 bits | site */
};

enum { LW_SCAN_LINK_AT = 12, LW_SCAN_MOST_LINKED = (1 << LW_SCAN_LINK_AT) - 1 };

struct lw_scan_index {
	struct lw_scan_entry *entries;
	uint64_t nr, max;
	uint64_t nr_sorted; /* of them; the first ones */
	uint64_t nr_owned;  /* that are blocks, and not memory between them */
	uint64_t lo, span;  /* no block has an address outside [lo, lo + span) */
	struct lw_words words; /* nor outside of these */
	uint32_t *regions;  /* by address / 16 MiB: 0 none, number of a table + 1, or the one block that reaches into it */
	uint64_t *tables;   /* of a stretch: how many begin before it << 32 | a bit for each granule where one begins */
	uint32_t stretch_bits;
	bool is_exact;	    /* every block begins at the start of a granule of its own */
	uint64_t used_bytes;
	bool is_full;	    /* there was no memory for all */
};

LW_INLINE uint64_t lw_scan_start(const struct lw_scan_entry *entry)
{
	return entry->start & LW_SCAN_ADDRESS;
}

LW_INLINE uint64_t lw_scan_bytes(const struct lw_scan_entry *entry)
{
	return entry->what & (entry->start & LW_SCAN_LINKED ? LW_SCAN_MOST_LINKED : LW_SCAN_BYTES);
}

/* Of a linked block: an entry, or LW_SCAN_NOTHING. */
LW_INLINE uint32_t lw_scan_link(const struct lw_scan_entry *entry)
{
	return (uint32_t)(entry->what >> LW_SCAN_LINK_AT);
}

LW_INLINE void lw_scan_set_link(struct lw_scan_entry *entry, uint32_t at)
{
	entry->what &= ~(UINT64_C(0xffffffff) << LW_SCAN_LINK_AT);
	entry->what |= (uint64_t)at << LW_SCAN_LINK_AT;
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

/* Makes room for one more; false: there is none. */
bool lw_scan_index_grow(struct lw_scan_index *index);

/* Blocks may come in any order; in the order of addresses they come cheapest. */
LW_INLINE void lw_scan_index_add(struct lw_scan_index *index, uint64_t start, uint64_t bytes, uint32_t site, uint64_t marks)
{
	uint64_t nr = index->nr;

	if (LW_UNLIKELY(nr == index->max) && !lw_scan_index_grow(index)) {
		index->is_full = true;
		return;
	}
	bytes = bytes < LW_SCAN_BYTES ? bytes : LW_SCAN_BYTES;
	if (index->nr_sorted == nr && (!nr || lw_scan_start(&index->entries[nr - 1]) <= start))
		index->nr_sorted++;
	index->entries[nr] = (struct lw_scan_entry){ start | marks, bytes | (uint64_t)site << LW_SCAN_SITE_AT };
	index->nr = nr + 1;
	index->nr_owned += !(marks & LW_SCAN_UNOWNED);
}

/* After the last block: sorts, and makes the ways. False: no memory. */
bool lw_scan_index_sort(struct lw_scan_index *index);
bool lw_scan_index_finish(struct lw_scan_index *index);

#define LW_SCAN_NOTHING UINT32_MAX
#define LW_SCAN_SINGLE (UINT32_C(1) << 31)

/* Where the search for an address begins, in two steps that each may miss the cache; then the search itself. */
LW_INLINE const uint64_t *lw_scan_index_stretch(const struct lw_scan_index *index, uint64_t address)
{
	uint64_t stretch = (address & ((UINT64_C(1) << LW_SCAN_REGION_BITS) - 1)) >> index->stretch_bits;
	uint32_t region = index->regions[address >> LW_SCAN_REGION_BITS];

	if (!region || region & LW_SCAN_SINGLE)
		return NULL;
	return &index->tables[((uint64_t)(region - 1) << (LW_SCAN_REGION_BITS - index->stretch_bits)) + stretch];
}

/* Without the processor's own instruction, which the oldest do not have. */
LW_INLINE uint32_t lw_scan_count_bits(uint32_t bits)
{
	bits -= bits >> 1 & UINT32_C(0x55555555);
	bits = (bits & UINT32_C(0x33333333)) + (bits >> 2 & UINT32_C(0x33333333));
	return ((bits + (bits >> 4)) & UINT32_C(0x0f0f0f0f)) * UINT32_C(0x01010101) >> 24;
}

/* *is_start: it is known already that this is the block, and that the address is its start. */
LW_INLINE uint32_t lw_scan_index_first(const struct lw_scan_index *index, uint64_t address, bool *is_start)
{
	const uint64_t *stretch = lw_scan_index_stretch(index, address);
	uint32_t region, granule_bits = index->stretch_bits - LW_SCAN_GRANULES_BITS, granule;

	*is_start = false;
	if (LW_LIKELY(stretch != NULL)) {
		granule = (uint32_t)(address >> granule_bits) & 31;
		*is_start = index->is_exact && *stretch >> granule & 1 && !(address & ((UINT64_C(1) << granule_bits) - 1));
		/* 0 of them, nothing, wraps around to LW_SCAN_NOTHING */
		return (uint32_t)(*stretch >> 32) + lw_scan_count_bits((uint32_t)*stretch & (uint32_t)((UINT64_C(2) << granule) - 1)) - 1;
	}
	region = index->regions[address >> LW_SCAN_REGION_BITS];
	return region ? region & ~LW_SCAN_SINGLE : LW_SCAN_NOTHING;
}

LW_INLINE uint32_t lw_scan_index_search(const struct lw_scan_index *index, uint32_t at, uint64_t address)
{
	uint64_t reach;

	if (at == LW_SCAN_NOTHING)
		return at;
	while (LW_UNLIKELY(lw_scan_start(&index->entries[at]) > address)) { /* begins later in the same granule */
		if (!at--)
			return LW_SCAN_NOTHING;
	}
	while (at + 1 < index->nr && LW_UNLIKELY(lw_scan_start(&index->entries[at + 1]) <= address))
		at++;
	reach = lw_scan_bytes(&index->entries[at]);
	reach = reach < LW_SCAN_LEAST_REACH ? LW_SCAN_LEAST_REACH : reach;
	return address - lw_scan_start(&index->entries[at]) <= reach ? at : LW_SCAN_NOTHING;
}

/* The block an address lies in, or is one past the end of; lo and span were looked at by the caller. */
LW_INLINE uint32_t lw_scan_index_find(const struct lw_scan_index *index, uint64_t address)
{
	bool is_start;

	return lw_scan_index_search(index, lw_scan_index_first(index, address, &is_start), address);
}

#endif
