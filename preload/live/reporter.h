/* SPDX-License-Identifier: MIT */
/*
 * reporter.h - leakwatch-snapshot as the writer of our reports: started, fed, waited for.
 *
 * It reads the region by itself where it can (segment, file); a private region is sent to it as
 * wire records through a pipe. Nothing here blocks for longer than a minute, whatever it does.
 */
#ifndef LW_LIVE_REPORTER_H
#define LW_LIVE_REPORTER_H

#include "preload/share/region.h"
#include "preload/share/report.h"

/* False: it is not there, did not start or did not finish; no report was written. */
bool lw_reporter_run(enum lw_end how, struct lw_report_done *done);

/* One event of the region, told at once. True: it was, or will be when the reporter is through. */
bool lw_reporter_tell(uint32_t event, uint32_t wait_ms);

#endif
