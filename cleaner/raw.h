/* SPDX-License-Identifier: MIT */
/*
 * raw.h - the post-mortem of last resort: module+offset lines, when leakwatch-snapshot is missing or
 * has failed twice. To log_path, else to the terminal that the process had.
 */
#ifndef LW_CLEANER_RAW_H
#define LW_CLEANER_RAW_H

#include "preload/share/options.h"
#include "preload/share/region.h"

/* region: the segment; copy: a header of it that was checked; signal: 0 unknown. */
void raw_report(const struct lw_region_header *region, uint64_t bytes,
	const struct lw_region_header *copy, const struct lw_options *options, int signal);

#endif
