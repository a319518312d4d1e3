/* SPDX-License-Identifier: MIT */
/*
 * scan_resolve.h - which block a word of some memory means, if any. In a header because it is asked of every word that
 * is near a block.
 */
#ifndef LW_LIVE_SCAN_RESOLVE_H
#define LW_LIVE_SCAN_RESOLVE_H

#include "preload/live/scan_mark.h"

enum { LW_SCAN_TAG_BITS = 9 /* a tag of the top byte leaves the bits from 47 to 55 zero */ };

/*
 * The head of a chunk of glibc lies in the last word of the block before it, so that the allocator's
 * lists of free chunks seem to point to blocks in use.
 */
LW_INLINE bool lw_scan_is_next_chunk(const struct lw_scan_entry *entry, uint64_t address)
{
	uint64_t start = lw_scan_start(entry), size = ((const uint64_t *)start)[-1] & ~UINT64_C(7);

	return address == start - 16 + size;
}

/* In an allocator's tables an address at the end of a block means the free one that begins there. */
LW_INLINE bool lw_scan_is_past_end(const struct lw_scan_marks *marks, const struct lw_scan_entry *entry, uint64_t address,
		uint32_t from)
{
	return from != LW_SCAN_NOTHING && marks->index.entries[from].start & LW_SCAN_TABLES &&
	       address - lw_scan_start(entry) >= lw_scan_bytes(entry);
}

/* The first step: notes where the search for it begins, so that this can be fetched. */
LW_INLINE void lw_scan_approach(const struct lw_scan_marks *marks, struct lw_scan_candidate *candidate)
{
	bool is_start;

	if (!candidate->word)
		return;
	candidate->at = lw_scan_index_first(&marks->index, candidate->word & LW_SCAN_ADDRESS, &is_start);
	/* to the start of a block any pointer may point, but not an allocator's to one without a size */
	if (is_start && (candidate->from == LW_SCAN_NOTHING || !(marks->index.entries[candidate->from].start & LW_SCAN_TABLES)))
		candidate->word = 0;
}

/* The second step: the block, or LW_SCAN_NOTHING. */
LW_INLINE uint32_t lw_scan_resolve(const struct lw_scan_marks *marks, const struct lw_scan_candidate *candidate)
{
	uint64_t word = candidate->word, address = word & LW_SCAN_ADDRESS;
	uint32_t at = word ? lw_scan_index_search(&marks->index, candidate->at, address) : candidate->at;
	const struct lw_scan_entry *entry;

	if (at == LW_SCAN_NOTHING || !word)
		return at;
	entry = &marks->index.entries[at];
	/* what lies between blocks has no end that anybody points to: a module may begin there */
	if (LW_UNLIKELY(entry->start & LW_SCAN_UNOWNED) && address - lw_scan_start(entry) >= lw_scan_bytes(entry))
		return LW_SCAN_NOTHING;
	if (lw_scan_is_past_end(marks, entry, address, candidate->from))
		return LW_SCAN_NOTHING;
	if (word >> LW_SCAN_ADDRESS_BITS & ((1u << LW_SCAN_TAG_BITS) - 1) && address != lw_scan_start(entry))
		return LW_SCAN_NOTHING;
	if (LW_UNLIKELY(marks->is_allocator) && !(entry->start & LW_SCAN_UNOWNED) && lw_scan_is_next_chunk(entry, address))
		return LW_SCAN_NOTHING;
	return at;
}

#endif
