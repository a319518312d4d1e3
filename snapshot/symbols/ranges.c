/* SPDX-License-Identifier: MIT */
/*
 * ranges.c - a sorted array with running maxima.
 *
 * The range that holds an address is nearly always the last one that begins below it. Where ranges
 * nest (a function inside a larger symbol) one has to look further back; max_hi says when to stop.
 */
#include "snapshot/symbols/ranges.h"

#include <stdlib.h>

enum { FIRST_RANGES = 64 };

bool ranges_add(struct ranges *ranges, uint64_t lo, uint64_t hi, uint32_t ref, uint32_t rank)
{
	if (ranges->nr == ranges->max) {
		size_t max = ranges->max ? ranges->max * 2 : FIRST_RANGES;
		struct range *v = reallocarray(ranges->v, max, sizeof(*v));

		if (!v)
			return false;
		ranges->v = v;
		ranges->max = max;
	}
	ranges->v[ranges->nr++] = (struct range){.lo = lo, .hi = hi, .ref = ref, .rank = rank};
	return true;
}

/* What is preferred comes later; ref settles the rest, that the answer never depends on qsort. */
static int compare(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi > b->hi ? -1 : 1;
	return a->ref > b->ref ? -1 : a->ref < b->ref;
}

void ranges_sort(struct ranges *ranges)
{
	uint64_t max_hi = 0;

	if (ranges->nr)
		qsort(ranges->v, ranges->nr, sizeof(*ranges->v), compare);
	for (size_t i = 0; i < ranges->nr; i++) {
		if (max_hi < ranges->v[i].hi)
			max_hi = ranges->v[i].hi;
		ranges->v[i].max_hi = max_hi;
	}
}

/* How many ranges begin at or below addr. */
static size_t count_below(const struct ranges *ranges, uint64_t addr)
{
	size_t least = 0, most = ranges->nr;

	while (least < most) {
		size_t middle = least + (most - least) / 2;

		if (ranges->v[middle].lo <= addr)
			least = middle + 1;
		else
			most = middle;
	}
	return least;
}

const struct range *ranges_find(const struct ranges *ranges, uint64_t addr)
{
	for (size_t i = count_below(ranges, addr); i-- && ranges->v[i].max_hi > addr;)
		if (ranges->v[i].hi > addr)
			return &ranges->v[i];
	return NULL;
}

const struct range *ranges_below(const struct ranges *ranges, uint64_t addr)
{
	size_t nr = count_below(ranges, addr);

	return nr ? &ranges->v[nr - 1] : NULL;
}

void ranges_fini(struct ranges *ranges)
{
	free(ranges->v);
	*ranges = (struct ranges){0};
}
