/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the recursive lock of the cold paths, and the order in which locks are taken.
 *
 * The thread that holds it may take it again and must release it as often; all others wait until
 * the count is back to zero. It needs no constructor and no pthread, so it works before main, in
 * .preinit_array, in a forked child, and while the loader holds its own locks. The malloc path
 * takes no lock at all.
 *
 * Order: a thread that holds a lock takes only locks below it. fork takes all in this order, the
 * parent releases them in reverse, the child calls lw_lock_reset() on each.
 *
 *	1  init_lock       base/real.c   looking up the next allocator; the one lock under which
 *					 dlsym() is called, which may allocate and come back here
 *	2  lw_sites_lock   share/box.c   all that is cold and grows: sites, modules, events, the
 *					 region's pool, rows and chunks of counters
 *
 * But for that one, no lock is held while calling the real allocator, the unwinder, a dl*()
 * function or lw_log.
 *
 * A signal handler that interrupts the holder is the same thread and gets in: what it then finds
 * may be half changed. The guard keeps hooks in handlers away from here; code that may run in a
 * handler all the same (an end by _exit) uses lw_lock_try() and is_mine(). The helper process
 * shares the TLS of the thread that made it, hence its identity, and must take none of these.
 *
 * Clang checks LW_GUARDED_BY and LW_HOLDS one function at a time, and does not know recursion: two
 * acquires in one body are an error to it. Recursive entry is therefore expressed by calls: a
 * function that takes and releases the lock itself carries no annotation, and may be called with
 * the lock held or not. One that must not be called by a holder says LW_EXCLUDES; one that counts
 * on its caller to hold it ends in _locked and says LW_HOLDS.
 */
#ifndef LW_BASE_LOCK_H
#define LW_BASE_LOCK_H

#include "preload/base/base.h"

#ifdef __clang__
#define LW_THREAD_SAFETY(x) __attribute__((x))
#else
#define LW_THREAD_SAFETY(x)
#endif
#define LW_CAPABILITY(name) LW_THREAD_SAFETY(capability(name))
#define LW_GUARDED_BY(lock) LW_THREAD_SAFETY(guarded_by(lock))
#define LW_PT_GUARDED_BY(lock) LW_THREAD_SAFETY(pt_guarded_by(lock))
#define LW_HOLDS(...) LW_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define LW_EXCLUDES(...) LW_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define LW_ACQUIRE(...) LW_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define LW_RELEASE(...) LW_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define LW_TRY_ACQUIRE(...) LW_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define LW_ASSERT_HELD(...) LW_THREAD_SAFETY(assert_capability(__VA_ARGS__))
/* For the fork handlers: one function acquires, another releases. */
#define LW_NO_LOCK_CHECK LW_THREAD_SAFETY(no_thread_safety_analysis)

struct LW_CAPABILITY("lock") lw_lock {
	uintptr_t owner; /* lw_lock_self() of the holder, 0 free; taking and owning are one step */
	uint32_t nr_again;   /* entries by the holder beyond its first; the holder's alone */
	uint32_t nr_waiting; /* threads in the slow path; tells a release to wake one */
	uint32_t wakeups;    /* futex word: changes whenever a waiter has to look again */
};

#define LW_LOCK_INIT                                                                               \
	{                                                                                          \
		0, 0, 0, 0                                                                         \
	}

/* What stands for the calling thread: the address of one of its thread-locals. No system call. */
uintptr_t lw_lock_self(void);

/* errno is kept by all of them. */
void lw_lock_acquire(struct lw_lock *lock) LW_ACQUIRE(*lock);
bool lw_lock_try(struct lw_lock *lock) LW_TRY_ACQUIRE(true, *lock);
/* One entry less. Does nothing for a thread that does not hold it. */
void lw_lock_release(struct lw_lock *lock) LW_RELEASE(*lock);
bool lw_lock_is_mine(const struct lw_lock *lock);

/* In the child of a fork, which has one thread: free again, whoever held it or waited for it. */
void lw_lock_reset(struct lw_lock *lock) LW_NO_LOCK_CHECK;

#endif
