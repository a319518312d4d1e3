/* SPDX-License-Identifier: MIT */
/*
 * scan_link.h - what small blocks point to, found in the order of addresses before anything is followed.
 *
 * Following pointers through small blocks means waiting for memory at each: for the block, for the way into the
 * index, for the entry; and in a long list nothing can be fetched early, as the next address is not known
 * before the block was read. So small blocks are read once, one after the other, which memory is fast at, and the one or
 * two blocks they point to are written into their entries. Who follows them later touches only entries. A block that
 * points to more is left to be read when it is reached.
 */
#ifndef LW_LIVE_SCAN_LINK_H
#define LW_LIVE_SCAN_LINK_H

#include "preload/live/scan_mark.h"

/* After lw_scan_marks_init(), before the first mark. */
void lw_scan_links_find(struct lw_scan_marks *marks);

#endif
