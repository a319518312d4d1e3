/* SPDX-License-Identifier: MIT */
/*
 * emit.h - region -> wire records, through a sink. The one emitter; the one decoder is in snapshot/.
 *
 * Reads a region that may be changing, or hostile (another process wrote it): every index, offset
 * and count is checked against the capacities of a header copied once at the start, and against
 * region_bytes. Allocates nothing and calls nothing that does; about 9 KiB of stack.
 */
#ifndef LW_SHARE_EMIT_H
#define LW_SHARE_EMIT_H

#include "preload/share/region.h"
#include "preload/share/wire.h"

/* Takes one whole record of record->bytes; false stops the dump. */
typedef bool lw_emit_sink_fn(void *context, const struct lw_wire_head *record);

/*
 * All of it, HELLO to BYE. now_mono_ns gives the age of a live process. Sites that hold and held
 * nothing (never counted and named by no event) are left out. False: the sink stopped it, or the
 * header is not one of ours.
 */
bool lw_emit_region(const struct lw_region_header *region, uint64_t region_bytes,
		uint64_t now_mono_ns, lw_emit_sink_fn *sink, void *context);

/*
 * The counters of nr sites from `first` on, summed over all rows; they must share a chunk
 * (first / LW_CHUNK_SITES).
 */
void lw_emit_counts(const struct lw_region_header *region, uint64_t region_bytes, uint32_t first,
		uint32_t nr, struct lw_count *sums);

/* The counters of one site summed over all rows; 0 in all where nothing is known. */
struct lw_count lw_emit_site_count(const struct lw_region_header *region, uint64_t region_bytes,
		uint32_t site);

#endif
