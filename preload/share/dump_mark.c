/* SPDX-License-Identifier: MIT */
/* dump_mark.c - the program's own marks as records; one that is just being written is left out. */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

/* The mark, if it is complete. */
static const struct lw_mark *mark_at(const struct dump *d, uint32_t index)
{
	const struct lw_mark *live = lw_dump_at(d->region, d->region_bytes, &d->marks, index, sizeof(*live));

	return live && lw_load_acquire(&live->is_ready) ? live : NULL;
}

uint64_t lw_dump_mark_count(const struct dump *d, uint32_t index)
{
	const struct lw_mark *live = mark_at(d, index);

	return live ? lw_load(&live->count) : 0;
}

bool lw_dump_mark(struct dump *d, uint32_t index)
{
	const struct lw_mark *live = mark_at(d, index);
	struct lw_wire_mark *record = lw_dump_begin(d, LW_WIRE_MARK, sizeof(*record));
	size_t name_bytes = 0;
	const char *name;

	if (!live)
		return true;
	name = lw_dump_text(d, lw_load(&live->name_off), &name_bytes);
	record->count = lw_load(&live->count);
	record->first_bytes = lw_load(&live->first_bytes);
	record->first_blocks = lw_load(&live->first_blocks);
	record->last_bytes = lw_load(&live->last_bytes);
	record->last_blocks = lw_load(&live->last_blocks);
	record->first_ms = lw_load(&live->first_ms);
	record->last_ms = lw_load(&live->last_ms);
	record->name_bytes = (uint32_t)name_bytes;
	if (name)
		memcpy(record->name, name, name_bytes);
	return lw_dump_finish(d, sizeof(*record) + name_bytes);
}
