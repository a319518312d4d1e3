/* SPDX-License-Identifier: MIT */
/* events.c - the list of wrong releases in the region; see events.h. */
#include "preload/record/events.h"

static struct lw_event *find(uint32_t nr_events, enum lw_event_what what, uint32_t alloc_site,
		uint32_t free_site)
{
	for (uint32_t i = 0; i < nr_events; i++) {
		struct lw_event *event = lw_box_event(i);

		if (event->what == what && event->alloc_site == alloc_site && event->free_site == free_site)
			return event;
	}
	return NULL;
}

static int add_locked(const struct lw_event *event) LW_HOLDS(lw_sites_lock)
{
	struct lw_event *known = find(lw_own.nr_events, event->what, event->alloc_site, event->free_site);

	if (known) {
		lw_add(&known->count, 1);
		return -1;
	}
	if (lw_own.nr_events == lw_own.max_events) {
		lw_box_drop(LW_DROP_EVENTS);
		return -1;
	}
	known = lw_box_event(lw_own.nr_events);
	*known = *event;
	known->count = 1;
	known->first_ms = lw_box_now_ms();
	lw_store_release(&known->is_ready, 1);
	LW_BOX_PUBLISH(nr_events, lw_own.nr_events + 1);
	return (int)lw_own.nr_events - 1;
}

int lw_events_add(const struct lw_event *event)
{
	int index;

	lw_lock_acquire(&lw_sites_lock);
	index = add_locked(event);
	lw_lock_release(&lw_sites_lock);
	return index;
}
