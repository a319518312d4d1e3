/* SPDX-License-Identifier: MIT */
/*
 * threads.h - what each thread owns in our tables: its row of counters, its memo, its scratch room.
 *
 * A thread gets them at its first event and gives them back when it ends: its counters are added to
 * row 0, its row and chunks are reused. Threads past LW_MAX_ROWS, and what a thread does after it
 * gave its row back, count in row 0 with atomic adds. Counting itself is inline, in count.h.
 */
#ifndef LW_RECORD_THREADS_H
#define LW_RECORD_THREADS_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/unwind/unwind.h"

struct lw_scratch {
	struct lw_stack stack;
};

/* Once, before any thread is attached: learn when threads end. May be called in a hook. */
void lw_threads_init(void);

/* Its part that wants an early place, for a process that comes up later: keys made early have small numbers. */
void lw_threads_make_key(void);

/* Sets *thread up for this process. False: no memory; the thread's gate is then OFF. */
bool lw_threads_attach(struct lw_thread *thread);

/* A larger table of remembered stacks for this thread, if there are so many that it needs one. */
void lw_threads_more_memos(struct lw_thread *thread);

/* For one event of a thread that has given its things back: a room for a while, counts in row 0. */
bool lw_threads_borrow(struct lw_thread *thread);
void lw_threads_give_back(struct lw_thread *thread);

/* The counters of a site in this thread's row, made if they are not there yet; NULL: no room. */
struct lw_count *lw_threads_add_chunk(struct lw_thread *thread, uint32_t site);

/* In a forked child: all rows are new; the one thread left keeps its memo. */
void lw_threads_fork_child(struct lw_thread *thread);

/*
 * Rows of threads that ended, whose counters were to move, and had moved, to the shared row. Counters on
 * their way are in neither: if as many had begun after a sum as had ended before it, it missed none.
 */
uint32_t lw_threads_folds_begun(void);
uint32_t lw_threads_folds_ended(void);

#endif
