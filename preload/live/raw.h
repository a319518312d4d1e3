/* SPDX-License-Identifier: MIT */
/*
 * raw.h - the report of last resort: module+offset lines by write(2) alone, when leakwatch-snapshot
 * is missing or cannot be started. Allocates nothing; goes to log_path, else, saying why
 * not there, to stderr where that is ours.
 */
#ifndef LW_LIVE_RAW_H
#define LW_LIVE_RAW_H

#include "preload/share/options.h"
#include "preload/share/report.h"

/* Fills done with what was leaked. why: there is no better report (lw_reporter_why()). */
void lw_raw_report(const struct lw_options *options, const char *why, struct lw_report_done *done);

/* One wrong release, to stderr. */
void lw_raw_event(uint32_t index);

#endif
