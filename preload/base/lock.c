/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the recursive lock: one word says who holds it, another is slept on.
 *
 * The owner word is the lock: one compare-and-swap from 0 to the caller's identity both takes it
 * and says whose it is. So there is no moment in which a signal handler finds its own thread
 * holding a lock that nobody owns, and waits for itself. For the same reason nr_again does not
 * count the first entry: a handler between "no further entry" and the store of 0 enters and leaves
 * in balance.
 *
 * Sleeping follows the order of an event count. A waiter announces itself, reads `wakeups`, tries
 * once more, and sleeps only while `wakeups` is what it read. A release clears the owner, then
 * looks for waiters, then changes `wakeups`. All of these are sequentially consistent, so either
 * the waiter's try sees the lock free or the release sees the waiter.
 *
 * In a sandbox the futex call may be refused. Then a waiter yields, and after some rounds sleeps
 * for growing moments of at most a millisecond, so that a long wait costs no processor.
 */
#include "preload/base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_YIELDS = 100, /* then sleeping begins */
	FIRST_NAP_NS = 10000,
	MAX_NAP_NS = 1000000,
};

static LW_TLS char identity;

uintptr_t lw_lock_self(void)
{
	return (uintptr_t)&identity;
}

static bool take(struct lw_lock *lock, uintptr_t self)
{
	uintptr_t nobody = 0;

	return __atomic_compare_exchange_n(
		&lock->owner, &nobody, self, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* How a waiter waits where futex is refused; *round grows from 0. */
static void wait_without_futex(unsigned *round)
{
	struct timespec nap = {0};

	if ((*round)++ < MAX_YIELDS) {
		sched_yield();
		return;
	}
	nap.tv_nsec = (long)FIRST_NAP_NS * (*round - MAX_YIELDS);
	if (nap.tv_nsec > MAX_NAP_NS)
		nap.tv_nsec = MAX_NAP_NS;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
}

LW_COLD static void wait_and_take(struct lw_lock *lock, uintptr_t self)
{
	unsigned round = 0;
	int saved_errno = errno;

	__atomic_fetch_add(&lock->nr_waiting, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		uint32_t seen = __atomic_load_n(&lock->wakeups, __ATOMIC_SEQ_CST);

		if (take(lock, self))
			break;
		/* woken, interrupted (EINTR) and overtaken (EAGAIN) alike look again */
		if (syscall(SYS_futex, &lock->wakeups, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) &&
			errno != EINTR && errno != EAGAIN)
			wait_without_futex(&round);
	}
	__atomic_fetch_sub(&lock->nr_waiting, 1, __ATOMIC_SEQ_CST);
	errno = saved_errno;
}

bool lw_lock_is_mine(const struct lw_lock *lock)
{
	return lw_load(&lock->owner) == lw_lock_self();
}

void lw_lock_acquire(struct lw_lock *lock) LW_NO_LOCK_CHECK
{
	if (!lw_lock_try(lock))
		wait_and_take(lock, lw_lock_self());
}

bool lw_lock_try(struct lw_lock *lock) LW_NO_LOCK_CHECK
{
	if (lw_lock_is_mine(lock)) {
		lock->nr_again++;
		return true;
	}
	return take(lock, lw_lock_self());
}

void lw_lock_release(struct lw_lock *lock) LW_NO_LOCK_CHECK
{
	int saved_errno = errno;

	if (!lw_lock_is_mine(lock))
		return;
	if (lock->nr_again) {
		lock->nr_again--;
		return;
	}
	__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&lock->nr_waiting, __ATOMIC_SEQ_CST))
		return;
	__atomic_fetch_add(&lock->wakeups, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &lock->wakeups, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved_errno;
}

void lw_lock_reset(struct lw_lock *lock)
{
	lock->nr_again = 0;
	lw_store(&lock->nr_waiting, 0);
	__atomic_store_n(&lock->owner, 0, __ATOMIC_SEQ_CST);
}
