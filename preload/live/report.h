/* SPDX-License-Identifier: MIT */
/*
 * report.h - the end of the target: who writes the report, and how.
 *
 * The names, the sorting and the writing are another process's work: leakwatch-snapshot is started
 * as an orphan, reads the region, and the target waits for its word, a bounded time. If it cannot
 * be started a raw report of modules and offsets is written from here.
 */
#ifndef LW_LIVE_REPORT_H
#define LW_LIVE_REPORT_H

#include "preload/share/options.h"
#include "preload/share/region.h"

/*
 * Reports once, from whichever end comes first; later calls wait for the first, a bounded time.
 * Takes no lock; may be called from a signal handler that interrupted our own code. Returns the status to end with.
 */
int lw_report_end(enum lw_end how, int status);

/* Settings the end needs; kept by reference. */
void lw_report_init(const struct lw_options *options);

#endif
