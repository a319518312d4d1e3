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

enum lw_reporter_end {
	LW_REPORTER_NONE,     /* there is no such program */
	LW_REPORTER_REFUSED,  /* it cannot be started by this process: no descriptors, no more processes */
	LW_REPORTER_FAILED,   /* it did not finish */
	LW_REPORTER_LATE,     /* nor is it known whether it ever will */
	LW_REPORTER_DONE,     /* else no report was written */
};

/* must_write_files: REFUSED where a limit of file sizes that cannot be raised would leave no room for them. */
enum lw_reporter_end lw_reporter_run(enum lw_end how, bool must_write_files, struct lw_report_done *done);

/* Why the last one did not report, in words that go on from "leakwatch: ". */
const char *lw_reporter_why(enum lw_reporter_end end);

/* One event of the region, told at once. True: it was, or will be when the reporter is through. */
bool lw_reporter_tell(uint32_t event, uint32_t wait_ms);

#endif
