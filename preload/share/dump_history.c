/* SPDX-License-Identifier: MIT */
/*
 * dump_history.c - what a site held at the moments that were noted, as a record.
 *
 * The moments are the same for all sites, and are put in order once a dump.
 */
#include "preload/share/dump.h"

#include "preload/base/base.h"

static void insert_moment(struct dump *d, struct lw_moment moment)
{
	uint32_t at = d->nr_samples++;

	for (; at > 0 && d->moments[at - 1].ms > moment.ms; at--)
		d->moments[at] = d->moments[at - 1];
	d->moments[at] = moment;
}

void lw_dump_read_moments(struct dump *d)
{
	d->nr_samples = 0;
	for (uint32_t slot = 0; slot < LW_HISTORY_SAMPLES; slot++) {
		const struct lw_sample *sample = &d->region->samples[slot];

		if (lw_load_acquire(&sample->is_kept))
			insert_moment(d, (struct lw_moment){.ms = lw_load(&sample->ms),
						 .slot = slot,
						 .nr_sites = lw_load(&sample->nr_sites)});
	}
}

static uint64_t value_at(const uint32_t *tile, uint32_t site, const struct lw_moment *moment)
{
	if (site >= moment->nr_sites)
		return 0;
	return lw_history_unpack(
		lw_load(&tile[moment->slot * LW_CHUNK_SITES + site % LW_CHUNK_SITES]));
}

bool lw_dump_history(struct dump *d, uint32_t site, const struct lw_count *count)
{
	struct lw_wire_history *record = lw_dump_begin(d, LW_WIRE_HISTORY, sizeof(*record));
	const uint32_t *tile = lw_dump_at(d->region, d->region_bytes, &d->history, site / LW_CHUNK_SITES,
		LW_HISTORY_TILE_BYTES);
	const struct lw_held *held = lw_dump_at(d->region, d->region_bytes, &d->held, site, sizeof(*held));
	uint64_t last_bytes = count->alloc_bytes - count->freed_bytes;
	bool is_steady = true;

	if (!tile || !d->nr_samples)
		return true;
	if (held && d->exit_began_ms) {
		record->exit_began_ms = d->exit_began_ms;
		record->held_bytes = last_bytes = lw_load(&held->bytes);
		record->held_blocks = lw_load(&held->blocks);
	}
	last_bytes = lw_history_unpack(lw_history_pack(last_bytes));
	for (uint32_t i = 0; i < d->nr_samples; i++) {
		uint64_t bytes = value_at(tile, site, &d->moments[i]);

		record->samples[i] = (struct lw_wire_sample){d->moments[i].ms, bytes};
		is_steady = is_steady && (bytes == last_bytes || !bytes);
	}
	if (is_steady)
		return true;
	record->site = site;
	record->nr_samples = d->nr_samples;
	return lw_dump_finish(d, sizeof(*record) + d->nr_samples * sizeof(record->samples[0]));
}
