/* SPDX-License-Identifier: MIT */
/*
 * dump.c - a region that is not to be trusted, made readable: where its areas lie, one access, one record.
 *
 * The region may be changing while it is read, and it may have been written by somebody who wants
 * us to read elsewhere. So the areas are copied once, and every single access goes through lw_dump_at(),
 * which checks index, stride and extent against that copy and against the size of the segment. What
 * does not fit is left out or cut, never trusted; texts are cut at their room.
 *
 * Runs inside the target too: no allocation, no libc state.
 */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

enum {
	MAX_NAME_BYTES = 4096, /* PATH_MAX: what a module path or a hint's file is cut at */
};

const void *lw_dump_at(const struct lw_region_header *region, uint64_t region_bytes,
	const struct lw_area *area, uint64_t index, uint64_t bytes)
{
	uint64_t inside = index * area->stride;

	if (index >= area->max || area->off > region_bytes || area->off % 8 || area->stride % 8)
		return NULL;
	if (inside > region_bytes - area->off || bytes > region_bytes - area->off - inside)
		return NULL;
	return (const unsigned char *)region + area->off + inside;
}

uint32_t lw_dump_cut(uint32_t nr, uint32_t room)
{
	return nr < room ? nr : room;
}

const char *lw_dump_text(const struct dump *d, uint32_t off, size_t *nr_bytes)
{
	const char *text = lw_dump_at(d->region, d->region_bytes, &d->pool, off, 8);
	uint64_t room = text ? (uint64_t)(d->pool.max - off) * 8 : 0;
	uint64_t rest = text ? d->region_bytes - (uint64_t)(text - (const char *)d->region) : 0;

	room = room < rest ? room : rest;
	*nr_bytes = text ? strnlen(text, room < MAX_NAME_BYTES ? room : MAX_NAME_BYTES) : 0;
	return text;
}

void *lw_dump_begin(struct dump *d, int64_t type, size_t bytes)
{
	struct lw_wire_head *head = (struct lw_wire_head *)(void *)d->record;

	memset(d->record, 0, bytes);
	head->type = type;
	head->version = LW_WIRE_VERSION;
	return d->record;
}

bool lw_dump_finish(struct dump *d, size_t bytes)
{
	struct lw_wire_head *head = (struct lw_wire_head *)(void *)d->record;
	size_t whole = LW_ALIGN_UP(bytes, (size_t)8);

	memset(d->record + bytes, 0, whole - bytes);
	head->bytes = (uint32_t)whole;
	return d->sink(d->context, head);
}

bool lw_dump_open(struct dump *d, const struct lw_region_header *region, uint64_t region_bytes,
	lw_emit_sink_fn *sink, void *context)
{
	if (lw_region_check(region, region_bytes))
		return false;
	d->region = region;
	d->region_bytes = region_bytes;
	d->modules = region->modules;
	d->sites = region->sites;
	d->rows = region->rows;
	d->chunks = region->chunks;
	d->events = region->events;
	d->hints = region->hints;
	d->pool = region->pool;
	d->marks = region->marks;
	d->held = region->held;
	d->history = region->history;
	d->scans = region->scans;
	d->chains = region->chains;
	d->sent = (struct lw_wire_bye){0};
	d->sink = sink;
	d->context = context;
	lw_dump_refresh(d);
	return true;
}

void lw_dump_refresh(struct dump *d)
{
	const struct lw_region_header *region = d->region;

	d->exit_began_ms = lw_load_acquire(&region->exit_began_ms);
	lw_dump_read_moments(d);
	/* what names before what is named: an event seen here names sites that are seen too */
	d->nr_events = lw_dump_cut(lw_load_acquire(&region->nr_events), d->events.max);
	d->nr_sites = lw_dump_cut(lw_load_acquire(&region->nr_sites), d->sites.max);
	d->nr_modules = lw_dump_cut(lw_load_acquire(&region->nr_modules), d->modules.max);
	d->nr_hints = lw_dump_cut(lw_load_acquire(&region->nr_hints), d->hints.max);
	d->nr_marks = lw_dump_cut(lw_load_acquire(&region->nr_marks), d->marks.max);
	d->nr_rows = lw_dump_cut(lw_load_acquire(&region->nr_rows), d->rows.max);
}
