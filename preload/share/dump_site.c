/* SPDX-License-Identifier: MIT */
/*
 * dump_site.c - a site as records: its stack with its macro's file and line, and its counts.
 *
 * Stacks are cut at LW_MAX_FRAMES; module numbers that name no module become LW_NO_MODULE.
 */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

/* Frames of a site into the record; how many there are room and memory for. */
static uint16_t copy_stack(struct dump *d, const struct lw_site *site, struct lw_wire_site *record)
{
	uint16_t nr_frames = (uint16_t)lw_dump_cut(site->nr_frames, LW_MAX_FRAMES);
	const uint64_t *stack =
		lw_dump_at(d->region, d->region_bytes, &d->pool, site->stack_off, (uint64_t)nr_frames * 10);
	unsigned char *modules = (unsigned char *)(record->pc + nr_frames);
	uint64_t stack_units = ((uint64_t)nr_frames * 10 + 7) / 8;

	if (!stack || site->stack_off + stack_units > d->pool.max)
		return 0;
	memcpy(record->pc, stack, nr_frames * sizeof(uint64_t));
	for (uint16_t i = 0; i < nr_frames; i++) {
		uint16_t module = ((const uint16_t *)(const void *)(stack + nr_frames))[i];

		if (module >= d->nr_modules)
			module = LW_NO_MODULE;
		memcpy(modules + i * sizeof(module), &module, sizeof(module));
	}
	return nr_frames;
}

static size_t copy_hint(
	struct dump *d, uint32_t index, struct lw_wire_site *record, unsigned char *to)
{
	const struct lw_hint *hint =
		lw_dump_at(d->region, d->region_bytes, &d->hints, index, sizeof(*hint));
	size_t nr_bytes = 0;
	const char *file;

	if (!index || index >= d->nr_hints || !hint)
		return 0;
	file = lw_dump_text(d, lw_load(&hint->file_off), &nr_bytes);
	if (!file || !nr_bytes)
		return 0;
	record->hint_line = lw_load(&hint->line);
	record->hint_file_bytes = (uint16_t)nr_bytes;
	memcpy(to, file, nr_bytes);
	return nr_bytes;
}

bool lw_dump_site(struct dump *d, uint32_t id)
{
	const struct lw_site *live = lw_dump_at(d->region, d->region_bytes, &d->sites, id, sizeof(*live));
	struct lw_wire_site *record = lw_dump_begin(d, LW_WIRE_SITE, sizeof(*record));
	struct lw_site site;
	size_t bytes;

	if (!live)
		return true;
	memcpy(&site, live, sizeof(site));
	record->id = id;
	record->first_ms = site.first_ms;
	record->oldest_ms = site.oldest_ms;
	record->kind = site.kind < LW_NR_KINDS ? site.kind : LW_KIND_UNKNOWN;
	record->flags = site.flags;
	record->nr_frames = copy_stack(d, &site, record);
	bytes = sizeof(*record) + (size_t)record->nr_frames * 10;
	bytes += copy_hint(d, site.hint, record, d->record + bytes);
	d->sent.nr_sites++;
	return lw_dump_finish(d, bytes);
}

bool lw_dump_count(struct dump *d, uint32_t id, const struct lw_count *count, uint32_t oldest_ms)
{
	struct lw_wire_count *record = lw_dump_begin(d, LW_WIRE_COUNT, sizeof(*record));

	record->site = id;
	record->oldest_ms = oldest_ms;
	record->alloc_bytes = count->alloc_bytes;
	record->alloc_blocks = count->alloc_blocks;
	record->freed_bytes = count->freed_bytes;
	record->freed_blocks = count->freed_blocks;
	return lw_dump_finish(d, sizeof(*record));
}

uint32_t lw_dump_oldest(const struct dump *d, uint32_t id)
{
	const struct lw_site *site = lw_dump_at(d->region, d->region_bytes, &d->sites, id, sizeof(*site));

	return site ? lw_load(&site->oldest_ms) : UINT32_MAX;
}
