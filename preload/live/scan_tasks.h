/* SPDX-License-Identifier: MIT */
/*
 * scan_tasks.h - the threads of a process, and what /proc says of each; raw system calls, no allocation.
 * One caller at a time: it uses rooms of its own that are not on the stack.
 */
#ifndef LW_LIVE_SCAN_TASKS_H
#define LW_LIVE_SCAN_TASKS_H

#include "preload/base/base.h"

/* Calls visit for each thread until it returns something negative. How many returned more than 0, or -errno. */
typedef int lw_scan_task_fn(void *context, int32_t tid);
int lw_scan_tasks_visit(int32_t pid, lw_scan_task_fn *visit, void *context);

/* Has it ended, and is only listed still? The first thread stays so until the last one ends. */
bool lw_scan_task_is_gone(int32_t pid, int32_t tid);

/* A file below /proc/PID/task/TID, as text; false: it cannot be read. */
bool lw_scan_task_read(int32_t pid, int32_t tid, const char *name, char *text, size_t max_bytes);

/*
 * Some calls (epoll_wait, nanosleep, semop ...) come back with EINTR from any stop. Where no signal of the program's
 * was the cause, nobody expects that, so the call is made again; but not those that have done their work already.
 */
bool lw_scan_may_repeat(int64_t call);

#endif
