/* SPDX-License-Identifier: MIT */
/*
 * scan_memory.h - is there room for a scanner? Asked before the snapshot: a program must not be thrown out
 * by its control group because of us.
 */
#ifndef LW_LIVE_SCAN_MEMORY_H
#define LW_LIVE_SCAN_MEMORY_H

#include "preload/base/base.h"

/* Asks only where much is needed, in bytes; what cannot be read counts as enough. */
bool lw_scan_has_memory(uint64_t needed_bytes);

/* About what a scan of the live blocks takes. */
uint64_t lw_scan_needed_bytes(void);

#endif
