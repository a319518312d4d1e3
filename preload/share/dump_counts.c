/* SPDX-License-Identifier: MIT */
/*
 * dump_counts.c - what sites have allocated and freed, added up over the rows of all threads.
 *
 * A few sites at a time, so that each chunk is visited once for a stretch of neighbours. A live target goes on
 * counting meanwhile: each number is one that was true at some moment of the dump.
 */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

_Static_assert(LW_CHUNK_SITES % LW_DUMP_STRETCH == 0, "a stretch lies in one chunk");

/* Counters of sites first..first+nr (in one chunk), added up over the rows into sums. */
static void sum_counts(const struct lw_region_header *region, uint64_t region_bytes,
	const struct lw_area *rows, const struct lw_area *chunks, uint32_t nr_rows, uint32_t first,
	uint32_t nr, struct lw_count *sums)
{
	uint64_t dir_off = sizeof(struct lw_row) + (uint64_t)(first / LW_CHUNK_SITES) * 4;

	memset(sums, 0, nr * sizeof(*sums));
	for (uint32_t r = 0; r < nr_rows; r++) {
		const unsigned char *row = lw_dump_at(region, region_bytes, rows, r, dir_off + 4);
		const struct lw_count *counts;
		uint32_t chunk;

		if (!row || dir_off + 4 > rows->stride)
			return;
		chunk = lw_load_acquire((const uint32_t *)(const void *)(row + dir_off));
		if (!chunk)
			continue;
		counts = lw_dump_at(region, region_bytes, chunks, chunk, sizeof(*counts) * LW_CHUNK_SITES);
		if (!counts)
			continue;
		counts += first % LW_CHUNK_SITES;
		for (uint32_t i = 0; i < nr; i++) {
			sums[i].alloc_bytes += lw_load(&counts[i].alloc_bytes);
			sums[i].alloc_blocks += lw_load(&counts[i].alloc_blocks);
			sums[i].freed_bytes += lw_load(&counts[i].freed_bytes);
			sums[i].freed_blocks += lw_load(&counts[i].freed_blocks);
		}
	}
}

void lw_emit_counts(const struct lw_region_header *region, uint64_t region_bytes, uint32_t first,
	uint32_t nr, struct lw_count *sums)
{
	struct lw_area rows = region->rows, chunks = region->chunks;
	uint32_t nr_rows = lw_dump_cut(lw_load_acquire(&region->nr_rows), rows.max);

	sum_counts(region, region_bytes, &rows, &chunks, nr_rows, first, nr, sums);
}

struct lw_count lw_emit_site_count(
	const struct lw_region_header *region, uint64_t region_bytes, uint32_t site)
{
	struct lw_count sum = {0};

	lw_emit_counts(region, region_bytes, site, 1, &sum);
	return sum;
}

void lw_dump_sum(const struct dump *d, uint32_t first, uint32_t nr, struct lw_count *sums)
{
	sum_counts(d->region, d->region_bytes, &d->rows, &d->chunks, d->nr_rows, first, nr, sums);
}
