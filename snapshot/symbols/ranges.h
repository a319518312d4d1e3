/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - address ranges that may nest or overlap, and which of them an address is in.
 *
 * Serves the units and functions of the debug information and the symbols of the symbol table.
 * Fill with ranges_add(), then ranges_sort() once, then ask. A zeroed set is valid and empty.
 */
#ifndef LW_SNAPSHOT_RANGES_H
#define LW_SNAPSHOT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t lo,
		hi; /* [lo, hi); lo == hi: holds no address, but marks where something begins */
	uint64_t max_hi; /* the greatest hi of this and all ranges before it, once sorted */
	uint32_t ref;	 /* the owner's: an index of what stands there */
	uint32_t rank;	 /* among ranges of the same lo the higher rank is preferred */
};

struct ranges {
	struct range *v;
	size_t nr, max;
};

/* False: out of memory, and the range is not in. */
bool ranges_add(struct ranges *ranges, uint64_t lo, uint64_t hi, uint32_t ref, uint32_t rank);
void ranges_sort(struct ranges *ranges);

/* The range with the greatest lo that holds addr, or NULL. */
const struct range *ranges_find(const struct ranges *ranges, uint64_t addr);

/* The last range that begins at or below addr, whether it holds addr or not, or NULL. */
const struct range *ranges_below(const struct ranges *ranges, uint64_t addr);

void ranges_fini(struct ranges *ranges);

#endif
