/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - has the program taken system calls from itself?
 *
 * From the moment it asks for seccomp any call of ours may be answered by a deadly SIGSYS. Hooks on
 * prctl() and syscall(), through which seccomp is asked for, say so here; from then on our code
 * makes none: stacks end where memory is not known to be readable, a new thread is not tracked,
 * tables do not grow, and the report is left to the cleaner.
 */
#ifndef LW_BASE_SANDBOX_H
#define LW_BASE_SANDBOX_H

#include "preload/base/base.h"

/* Written once, by the thread that enters the sandbox; relaxed. */
extern uint32_t lw_sandbox_is_on;

LW_INLINE bool lw_sandboxed(void)
{
	return LW_UNLIKELY(lw_load(&lw_sandbox_is_on));
}

#endif
