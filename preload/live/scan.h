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

#include "preload/base/sys_x86_64.h"
#include "preload/share/options.h"

/*
 * At bring-up, where the loader may still be asked: what belongs to the allocator in line. Its variables hold
 * addresses of blocks for its own purposes.
 */
void lw_scan_init(const struct lw_options *options);

/*
 * At the end of the process, in the thread that ends it; its stack counts from where regs point up. Waits for the
 * scanner, a bounded time. What came of it stands in lw_box->scan.
 */
void lw_scan_at_exit(const uint64_t regs[LW_NR_REGS], const struct lw_options *options);

/* Has a viewer asked for a scan, or is it time for one? Now and then, by any thread, inside a hook. Waits for nothing. */
void lw_scan_look(const struct lw_options *options);

/* The same for a thread that was sent here by a viewer. */
void lw_scan_knocked(void);

/*
 * At once, and waits until it is done, a bounded time; the calling thread's stack counts from where regs point
 * up. False: no scan was made. What is lost, directly or not, adds up to *bytes in *blocks.
 */
bool lw_scan_now(const uint64_t regs[LW_NR_REGS], uint64_t *bytes, uint64_t *blocks);

/*
 * After the process was killed, by the helper, which still has its memory: where its threads stood is not known.
 * Waits until it is done, a bounded time.
 */
void lw_scan_after_death(void);

/* In a forked child: scans that are under way are the parent's. */
void lw_scan_forked(void);

#endif
