/* SPDX-License-Identifier: MIT */
/*
 * narrate.h - what `verbose` says: a line each for options, region, queue, cleaner and, at the end, stack walks.
 *
 * Only where this process may speak at all: the one that was started under LeakWatch, or named by `follow`.
 */
#ifndef LW_LIVE_NARRATE_H
#define LW_LIVE_NARRATE_H

#include "preload/live/cleaner.h"
#include "preload/share/options.h"

/* text: the options in force; the errors are 0 or -errno of what could not be had. */
void lw_narrate_start(const struct lw_options *options, const char *text, int region_error, int queue_error,
		enum lw_cleaner_found cleaner);
void lw_narrate_end(const struct lw_options *options);

#endif
