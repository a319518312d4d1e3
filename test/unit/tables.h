/* SPDX-License-Identifier: MIT */
/*
 * tables.h - the tables of the preloaded library brought up inside a test, without hooks.
 *
 * A test that includes this links base/, share/, unwind/ and record/ and is itself what init.c is to
 * them. Events are made by calling lw_track_* with addresses of its own choosing: the tables never
 * look behind an address. The region leaves the system as soon as it is made, so that no test, not
 * even one that crashes, leaves a segment behind; the mapping goes on to work.
 */
#ifndef LW_TEST_TABLES_H
#define LW_TEST_TABLES_H

#include <stdlib.h>
#include <sys/mman.h>

#include "preload/base/hot.h"
#include "preload/base/sys.h"
#include "preload/record/blocks.h"
#include "preload/record/sites.h"
#include "preload/record/threads.h"
#include "preload/record/track.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"

/* What the tables are made with; a test may change it before the first event. */
static struct lw_options tables_options;
static uint32_t tables_max_sites = 4096, tables_granule_shift = 5;

bool lw_bring_up(void)
{
	int refusal;

	lw_options_init(&tables_options);
	tables_options.max_sites = tables_max_sites;
	if (!lw_box_create(&tables_options, 0, &refusal))
		return false;
	lw_box_remove();
	if (!lw_sites_init() || !lw_blocks_init(tables_granule_shift))
		return false;
	lw_threads_init();
	lw_hot.depth = tables_options.depth;
	lw_hot.chunks = (uint8_t *)lw_box + lw_box->chunks.off;
	lw_hot.start_ns = lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE);
	(void)madvise(&lw_hot_page, sizeof(lw_hot_page), MADV_WIPEONFORK);
	lw_track_start();
	return true;
}

void lw_tell_event(uint32_t index)
{
	(void)index;
}

void lw_now_and_then(void)
{
}

void lw_child_started(void)
{
	lw_box_remove();
}

/* Brings the tables up now; a test that cannot even have tables ends here. */
__attribute__((unused)) static void tables_start(void)
{
	if (!lw_track_enter())
		abort();
	lw_track_leave();
}

/* The caller as hooks see it, and as a frame. */
#define TABLES_FRAME(frame)                                                                        \
	LW_CALLER(frame##_call);                                                                   \
	const struct lw_frame frame = lw_frame_of(frame##_call)

#endif
