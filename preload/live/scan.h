/* SPDX-License-Identifier: MIT */
/*
 * scan.h - which blocks does nothing point to any more? Asked of a snapshot, not of the running program.
 *
 * A raw clone copies the address space (copy on write), so the program stands still only for the
 * time of the clone. The copy is the scanner: it reads its own memory, writes what it finds into the
 * region, which both share, and ends. It is nobody's child that the program could wait for.
 */
#ifndef LW_LIVE_SCAN_H
#define LW_LIVE_SCAN_H

#include "preload/base/base.h"
#include "preload/share/options.h"

/*
 * At bring-up, where the loader may still be asked: what belongs to the allocator in line. Its variables hold
 * addresses of blocks for its own purposes.
 */
void lw_scan_init(void);

/*
 * At the end of the process, in the thread that ends it, whose stack counts from sp up. Waits for the
 * scanner, a bounded time. What came of it stands in lw_box->scan.
 */
void lw_scan_at_exit(uintptr_t sp, const struct lw_options *options);

/* Has a viewer asked for a scan, or is it time for one? Now and then, by any thread, inside a hook. Waits for nothing. */
void lw_scan_look(const struct lw_options *options);

/* In a forked child: scans that are under way are the parent's. */
void lw_scan_forked(void);

#endif
