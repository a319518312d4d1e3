/* SPDX-License-Identifier: MIT */
/*
 * past.h - the ticks of a saved watch as history of its sites, so that a report of the file judges by all of it.
 *
 * The records tell a site's history once, when they first tell of the site; what it held later only its
 * counts say. A viewer keeps series of its own (view/watch.h); this is for those that read a file to its end.
 */
#ifndef LW_SNAPSHOT_PAST_H
#define LW_SNAPSHOT_PAST_H

#include "snapshot/model/model.h"

/* A lw_emit_sink_fn with a struct decode: decode_record(), and what each site holds at a tick is kept. */
bool past_record(void *decode, const struct lw_wire_head *record);

#endif
