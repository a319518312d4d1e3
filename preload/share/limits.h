/* SPDX-License-Identifier: MIT */
/*
 * limits.h - resource limits that our own programs inherit from the watched process that starts them.
 *
 * A soft limit is raised to the hard one, and a hard one that is too low to what is enough, if the
 * system lets us (CAP_SYS_RESOURCE). Where it does not, the process is poor: its reporter may not
 * come up or may not write, and a cleaner that it starts must not be everybody's (door.h).
 *
 * The target's own limits are never changed: lw_limits_raise() is for a process of ours, also before
 * its exec, when it shares the target's memory. Raw system calls only.
 */
#ifndef LW_SHARE_LIMITS_H
#define LW_SHARE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* What a program of ours may be started without, and what not; a set of them is a mask of 1 << which. */
enum lw_limit {
	LW_LIMIT_FILES, /* open descriptors */
	LW_LIMIT_FILE_BYTES,
	LW_LIMIT_STACK_BYTES,
	LW_LIMIT_SPACE_BYTES,
	LW_LIMIT_DATA_BYTES,
	LW_LIMIT_CPU_S,
	LW_NR_LIMITS,
};

enum {
	LW_LIMITS_REPORTER_FILES = 8, /* for the loader's, the region's and debug information's files */
};

/* Of this process: which of its hard limits are too low for a cleaner of everybody. */
uint32_t lw_limits_poor(void);

/* Raises what can be raised. */
void lw_limits_raise(void);

/* One hard limit. */
uint64_t lw_limits_hard(enum lw_limit which);

#endif
