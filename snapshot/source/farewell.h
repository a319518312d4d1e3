/* SPDX-License-Identifier: MIT */
/*
 * farewell.h - the last record of a region, with what its reader knows and the region does not: that its
 * process is gone.
 *
 * A sink before the sink: it passes everything on, and adds its flags to BYE.
 */
#ifndef LW_SNAPSHOT_FAREWELL_H
#define LW_SNAPSHOT_FAREWELL_H

#include "preload/share/emit.h"

struct farewell {
	lw_emit_sink_fn *sink;
	void *context;
	uint32_t flags; /* LW_BYE_*; 0: nothing is added */
};

/* A lw_emit_sink_fn with a struct farewell. */
bool farewell_record(void *farewell, const struct lw_wire_head *record);

#endif
