/* SPDX-License-Identifier: MIT */
/*
 * process.h - what this process was started as: arguments, environment, auxiliary vector, names.
 *
 * Taken from where the kernel put it, at the top of the main stack, so that it can be asked before
 * libc has set up environ, and gives what the process was started with whatever it did since.
 */
#ifndef LW_SHARE_PROCESS_H
#define LW_SHARE_PROCESS_H

#include "preload/base/base.h"
#include "preload/share/region.h"

/* The value of an environment variable at the start, or NULL. Asked early: programs may write there. */
const char *lw_process_env(const char *name);

/* An entry of the auxiliary vector; 0 if absent. */
unsigned long lw_process_aux(unsigned long type);

/* Fills pid, ppid, uid, start time, clocks, the stderr fields and flags of a header. */
void lw_process_describe(struct lw_region_header *header);

/* Fills exe and cmdline: straight in the region, since copying them would touch more pages twice. */
void lw_process_name(struct lw_region_header *header);

/* The path of the running program: where the kernel says it is, else what it was called by. */
uint32_t lw_process_exe(char *out, size_t out_bytes);

/*
 * Where this process stands among the watched ones: LW_REGION_ROOT if none of its ancestors is watched,
 * LW_REGION_UNDER_REAPER if one of them would become the parent of our orphans.
 */
uint32_t lw_process_place(const struct lw_region_header *header);

/* The same of a child, by the flags of its parent. */
uint32_t lw_process_under(uint32_t flags);

/*
 * Is this for certain the child of a watched process, and not what a watched image has become by exec? For
 * processes that come by the thousand and do little: five system calls, nothing is mapped, no /proc. The
 * answer yes is kept: later the parent may be gone.
 */
bool lw_process_is_plain_child(void);

#endif
