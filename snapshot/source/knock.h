/* SPDX-License-Identifier: MIT */
/*
 * knock.h - making a process that never comes to our hooks look whether a scan is wanted.
 *
 * One of its threads is stopped by ptrace for a fraction of a millisecond, sent to a function of the library that asks
 * nothing of libc, and put back with all its registers, as a debugger calls a function.
 */
#ifndef LW_SNAPSHOT_KNOCK_H
#define LW_SNAPSHOT_KNOCK_H

#include <sys/types.h>

#include "preload/share/region.h"

/* NULL: one of its threads has looked. Else why not, as the rest of a sentence on the process. */
const char *knock_at(pid_t pid, struct lw_region_header *region);

#endif
