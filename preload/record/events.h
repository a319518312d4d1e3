/* SPDX-License-Identifier: MIT */
/*
 * events.h - wrong releases: kept once per (what, allocation site, release site), then counted.
 */
#ifndef LW_RECORD_EVENTS_H
#define LW_RECORD_EVENTS_H

#include "preload/share/box.h"

/* True: seen for the first time. Full: counted as dropped. */
bool lw_events_add(enum lw_event_what what, uint32_t alloc_site, uint32_t free_site, uint64_t bytes,
		uint64_t expected);

#endif
