/* SPDX-License-Identifier: MIT */
/* dump_event.c - wrong releases as records; one that is just being written is left out. */
#include "preload/share/dump.h"

#include <string.h>

#include "preload/base/base.h"

bool lw_dump_read_event(const struct dump *d, uint32_t index, struct lw_event *event)
{
	const struct lw_event *live =
		lw_dump_at(d->region, d->region_bytes, &d->events, index, sizeof(*live));

	if (!live || !lw_load_acquire(&live->is_ready))
		return false;
	memcpy(event, live, sizeof(*event));
	event->count = lw_load(&live->count);
	return event->what > LW_EVENT_NONE && event->what < LW_NR_EVENT_KINDS;
}

bool lw_dump_event(struct dump *d, const struct lw_event *event)
{
	struct lw_wire_event *record = lw_dump_begin(d, LW_WIRE_EVENT, sizeof(*record));

	record->what = event->what;
	record->alloc_site = event->alloc_site;
	record->free_site = event->free_site;
	record->first_ms = event->first_ms;
	record->count = event->count;
	record->bytes = event->bytes;
	record->expected = event->expected;
	record->flags = event->flags;
	d->sent.nr_events++;
	return lw_dump_finish(d, sizeof(*record));
}
