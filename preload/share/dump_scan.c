/* SPDX-License-Identifier: MIT */
/* dump_scan.c - what the last search for lost memory found, as records. */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

/* What the last scan found at a site; false: nothing, or it cannot be read. */
static bool read_scan(const struct dump *d, uint32_t site, struct lw_scan_site *found)
{
	const struct lw_scan_site *live = lw_dump_at(d->region, d->region_bytes, &d->scans, site, sizeof(*live));

	if (!live)
		return false;
	memcpy(found, live, sizeof(*found));
	return found->lost_blocks || found->indirect_blocks || found->dragged_blocks;
}

static bool emit_scan_site(struct dump *d, uint32_t site)
{
	struct lw_wire_scan_site *record = lw_dump_begin(d, LW_WIRE_SCAN_SITE, sizeof(*record));
	struct lw_scan_site found;

	if (!read_scan(d, site, &found))
		return true;
	record->site = site;
	record->lost_bytes = found.lost_bytes;
	record->lost_blocks = found.lost_blocks;
	record->indirect_bytes = found.indirect_bytes;
	record->indirect_blocks = found.indirect_blocks;
	record->dragged_bytes = found.dragged_bytes;
	record->dragged_blocks = found.dragged_blocks;
	return lw_dump_finish(d, sizeof(*record));
}

static bool emit_chains(struct dump *d)
{
	uint32_t nr_chains = lw_load(&d->region->scan.nr_chains);

	for (uint32_t i = 0; i < nr_chains && i < LW_MAX_CHAINS; i++) {
		const struct lw_chain *live = lw_dump_at(d->region, d->region_bytes, &d->chains, i, sizeof(*live));
		struct lw_wire_chain *record = lw_dump_begin(d, LW_WIRE_CHAIN, sizeof(*record));

		if (!live)
			break;
		memcpy(&record->chain, live, sizeof(*live));
		if (record->chain.site < d->nr_sites && !lw_dump_finish(d, sizeof(*record)))
			return false;
	}
	return true;
}

static bool emit_scan_head(struct dump *d, uint32_t state)
{
	struct lw_wire_scan *record = lw_dump_begin(d, LW_WIRE_SCAN, sizeof(*record));
	const struct lw_scan *scan = &d->region->scan;
	uint64_t began_ns = lw_load(&scan->began_mono_ns), started_ns = d->region->started_mono_ns;

	record->state = state;
	record->why = lw_load(&scan->why);
	record->flags = lw_load(&scan->flags);
	record->nr_threads = lw_load(&scan->nr_threads);
	record->began_ns = began_ns > started_ns ? began_ns - started_ns : 0;
	record->took_ns = lw_load(&scan->took_ns);
	record->pause_ns = lw_load(&scan->pause_ns);
	record->live_blocks = lw_load(&scan->live_blocks);
	record->live_bytes = lw_load(&scan->live_bytes);
	record->swept_bytes = lw_load(&scan->swept_bytes);
	record->used_bytes = lw_load(&scan->used_bytes);
	record->cpu_ns = lw_load(&scan->cpu_ns);
	return lw_dump_finish(d, sizeof(*record));
}

/*
 * The scan is said last of its records: a reader that has them all knows that none was being written
 * meanwhile. Else it is said to be running, and the sites' records mean nothing.
 */
bool lw_dump_scan(struct dump *d)
{
	const struct lw_scan *scan = &d->region->scan;
	uint32_t seq = lw_load_acquire(&scan->seq), state = lw_load_acquire(&scan->state);

	if (state == LW_SCAN_NONE)
		return true;
	for (uint32_t i = 0; i < d->nr_sites && seq && !(seq & 1); i++)
		if (!emit_scan_site(d, i))
			return false;
	if (seq && !(seq & 1) && !emit_chains(d))
		return false;
	lw_fence(__ATOMIC_ACQUIRE);
	if (seq & 1 || seq != lw_load(&scan->seq))
		state = LW_SCAN_RUNNING;
	return emit_scan_head(d, state);
}
