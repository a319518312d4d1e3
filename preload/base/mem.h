/* SPDX-License-Identifier: MIT */
/*
 * mem.h - memory for our own records: anonymous mappings, never the target's heap.
 *
 * Mappings are left out of core files, out of huge pages (tables are sparse: a huge page would make
 * one block's record cost 2 MiB), reserve no swap, and carry a name in /proc/PID/maps where the
 * kernel allows it. All functions may run inside any hook; none touches errno. NULL when the kernel
 * refuses: the caller counts a drop and goes on.
 */
#ifndef LW_BASE_MEM_H
#define LW_BASE_MEM_H

#include "preload/base/base.h"

/* Zeroed pages; bytes is rounded up to whole pages. `name` is shown as [anon:name]. */
void *lw_mem_map(size_t bytes, const char *name);
void lw_mem_unmap(void *start, size_t bytes);

/*
 * Calls visit for each of our mappings that is still there; false: there are more than are remembered.
 * In a process that has copied this memory it tells the same.
 */
typedef void lw_mem_visit_fn(void *context, uintptr_t start, uintptr_t end);
bool lw_mem_visit(lw_mem_visit_fn *visit, void *context);

/*
 * What our mappings really hold: small ones whole, large sparse ones by the pages that exist (as
 * far as their first MAX_LARGE go). Asks the kernel, some microseconds for each large one.
 */
uint64_t lw_mem_used_bytes(void);

#endif
