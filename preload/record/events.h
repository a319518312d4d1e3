/* SPDX-License-Identifier: MIT */
/*
 * events.h - wrong releases: kept once per (what, allocation site, release site), then counted.
 */
#ifndef LW_RECORD_EVENTS_H
#define LW_RECORD_EVENTS_H

#include "preload/share/box.h"

/*
 * Counts one more of this sort, of which `what`, `alloc_site` and `free_site` tell; the rest of *event
 * is kept when it is the first. The number of a new entry; -1: known already, or full (counted as dropped).
 */
int lw_events_add(const struct lw_event *event);

#endif
