/* SPDX-License-Identifier: MIT */
/*
 * memory.h - how much memory a process can still get before it, or its machine, has none.
 */
#ifndef LW_SNAPSHOT_MEMORY_H
#define LW_SNAPSHOT_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The least of what the limits of its memory cgroups leave and of what the machine has available.
 * pid 0: of this process. 0: not known.
 */
uint64_t memory_left_bytes(pid_t pid);

#endif
