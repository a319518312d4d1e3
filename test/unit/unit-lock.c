/* SPDX-License-Identifier: MIT */
/*
 * unit-lock.c - the recursive lock: counted entry by its holder, exclusion of all others, use
 * before main, fork, interruption by signals, and a kernel that refuses futex().
 */
#include "preload/base/lock.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/tap.h"

/* The sanitizers lose track of a thread that ends by a system call. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER true
#elif defined(__has_feature)
#define HAS_SANITIZER (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define HAS_SANITIZER false
#endif

enum { NR_THREADS = 8, NR_ROUNDS = 20000, NR_HANDLER_RUNS = 200 };

static struct lw_lock lock = LW_LOCK_INIT;
static uint64_t guarded LW_GUARDED_BY(lock);

/* ---- before main ---- */

static struct lw_lock early_lock = LW_LOCK_INIT;
static int nr_early_entries LW_GUARDED_BY(early_lock);

static void enter_twice(void)
{
	lw_lock_acquire(&early_lock);
	nr_early_entries++;
	lw_lock_release(&early_lock);
}

/* Recursion as lock.h wants it said: by a call. */
static void enter_early(void)
{
	lw_lock_acquire(&early_lock);
	nr_early_entries++;
	enter_twice();
	lw_lock_release(&early_lock);
}

__attribute__((constructor(101))) static void enter_in_constructor(void)
{
	enter_early();
}

__attribute__((section(".preinit_array"), used)) static void (*const enter_in_preinit)(
	void) = enter_early;

/* ---- helpers ---- */

static void nap_ms(long ms)
{
	struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&nap, &nap) && errno == EINTR)
		;
}

static void *try_once(void *arg) LW_NO_LOCK_CHECK
{
	bool *is_taken = arg;

	*is_taken = lw_lock_try(&lock);
	lw_lock_release(&lock); /* when it is not ours, this must change nothing */
	return NULL;
}

static bool another_thread_gets_it(void)
{
	bool is_taken = false;
	pthread_t thread;

	pthread_create(&thread, NULL, try_once, &is_taken);
	pthread_join(thread, NULL);
	return is_taken;
}

/* ---- tests ---- */

static void test_counted_entry(void) LW_NO_LOCK_CHECK
{
	ok(!lw_lock_is_mine(&lock), "a new lock is nobody's");
	for (int n = 1; n <= 5; n++)
		lw_lock_acquire(&lock);
	ok(lw_lock_try(&lock), "a try by the holder succeeds");
	for (int n = 6; n >= 1; n--) {
		ok(lw_lock_is_mine(&lock) && !another_thread_gets_it(),
			"with %d entries left it is still held", n);
		lw_lock_release(&lock);
	}
	ok(!lw_lock_is_mine(&lock) && another_thread_gets_it(), "as many releases set it free");
	lw_lock_release(&lock);
	ok(another_thread_gets_it() && lw_lock_try(&lock), "one too many changes nothing");
	lw_lock_release(&lock);
}

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < NR_ROUNDS; i++) {
		lw_lock_acquire(&lock);
		guarded++;
		lw_lock_release(&lock);
	}
	return NULL;
}

static uint64_t read_guarded(void)
{
	uint64_t value;

	lw_lock_acquire(&lock);
	value = guarded;
	lw_lock_release(&lock);
	return value;
}

static void test_exclusion(void)
{
	pthread_t threads[NR_THREADS];
	uint64_t before = read_guarded();

	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, count_up, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	is_u64(read_guarded() - before, NR_THREADS * NR_ROUNDS,
		"no increment of %d threads is lost", NR_THREADS);
	is_u64(lock.nr_waiting, 0, "nobody is left waiting");
}

static int is_through; /* atomic */

static void *wait_for_lock(void *arg)
{
	(void)arg;
	errno = 77;
	lw_lock_acquire(&lock);
	lw_lock_release(&lock);
	lw_store_release(&is_through, errno == 77 ? 1 : 2);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
}

static void test_interrupted_wait(void) LW_NO_LOCK_CHECK
{
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	lw_lock_acquire(&lock);
	pthread_create(&thread, NULL, wait_for_lock, NULL);
	while (!lw_load(&lock.nr_waiting))
		sched_yield();
	for (int i = 0; i < 20; i++) {
		pthread_kill(thread, SIGUSR1);
		nap_ms(1);
	}
	ok(!lw_load_acquire(&is_through), "signals do not end the wait");
	lw_lock_release(&lock);
	pthread_join(thread, NULL);
	is_u64(lw_load_acquire(&is_through), 1, "the release does, and errno is kept");
}

static int nr_handler_runs; /* by one thread */

static void enter_in_handler(int number)
{
	(void)number;
	lw_lock_acquire(&lock);
	nr_handler_runs++;
	lw_lock_release(&lock);
}

/* Were taking and owning two steps, a handler between them would wait for its own thread. */
static void test_handler(void)
{
	struct sigaction action = {.sa_handler = enter_in_handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	time_t deadline = time(NULL) + 10;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (*(volatile int *)&nr_handler_runs < NR_HANDLER_RUNS && time(NULL) < deadline)
		for (int i = 0; i < 1000; i++)
			read_guarded();
	setitimer(ITIMER_REAL, &never, NULL);
	ok(nr_handler_runs >= NR_HANDLER_RUNS,
		"a handler that interrupts its own thread gets in (%d)", nr_handler_runs);
	ok(another_thread_gets_it(), "and leaves the lock free");
}

static int is_held, may_release; /* atomic */

static void *hold(void *arg)
{
	(void)arg;
	lw_lock_acquire(&lock);
	lw_store_release(&is_held, 1);
	while (!lw_load_acquire(&may_release))
		nap_ms(1);
	lw_lock_release(&lock);
	return NULL;
}

static int in_child(void) LW_NO_LOCK_CHECK
{
	alarm(5);
	signal(SIGALRM, SIG_DFL);
	if (lw_lock_try(&lock))
		return 1;
	lw_lock_reset(&lock);
	lw_lock_acquire(&lock);
	lw_lock_acquire(&lock);
	lw_lock_release(&lock);
	if (!lw_lock_is_mine(&lock))
		return 2;
	lw_lock_release(&lock);
	return lw_lock_is_mine(&lock) || lock.nr_waiting ? 3 : 0;
}

/* At the fork one thread holds the lock, another waits for it; neither exists in the child. */
static void test_fork(void)
{
	pthread_t holder, waiter;
	int status;
	pid_t pid;

	lw_store_release(&is_through, 0);
	pthread_create(&holder, NULL, hold, NULL);
	while (!lw_load_acquire(&is_held))
		sched_yield();
	pthread_create(&waiter, NULL, wait_for_lock, NULL);
	while (!lw_load(&lock.nr_waiting))
		sched_yield();
	pid = fork();
	if (!pid)
		_exit(in_child());
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && !WEXITSTATUS(status),
		"a child resets a lock held elsewhere and takes it");
	lw_store_release(&may_release, 1);
	pthread_join(holder, NULL);
	pthread_join(waiter, NULL);
	is_u64(lw_load_acquire(&is_through), 1, "the parent's threads are not concerned");
}

/* ---- a sandbox ---- */

/* From here on futex() fails in this thread; the others keep it. */
static bool refuse_futex(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = LW_ARRAY_LENGTH(rules), .filter = rules};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

static int sandbox_state; /* atomic: 0 starting, 1 waiting, 2 through, -1 no seccomp */
static int64_t sandbox_cpu_ns;

static void *wait_in_sandbox(void *arg)
{
	struct timespec from, to;

	(void)arg;
	if (!refuse_futex()) {
		lw_store_release(&sandbox_state, -1);
		return NULL;
	}
	lw_store_release(&sandbox_state, 1);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	lw_lock_acquire(&lock);
	lw_lock_release(&lock);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	sandbox_cpu_ns =
		(to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec;
	lw_store_release(&sandbox_state, 2);
	syscall(SYS_exit, 0); /* glibc would want futex */
	return NULL;
}

static void test_sandbox(void) LW_NO_LOCK_CHECK
{
	pthread_t thread;

	lw_lock_acquire(&lock);
	pthread_create(&thread, NULL, wait_in_sandbox, NULL);
	while (!lw_load_acquire(&sandbox_state))
		sched_yield();
	nap_ms(200);
	if (lw_load_acquire(&sandbox_state) < 0) {
		ok(true, "futex refused # SKIP no seccomp here");
		lw_lock_release(&lock);
		return;
	}
	is_u64(lw_load_acquire(&sandbox_state), 1, "without futex it waits too");
	lw_lock_release(&lock);
	pthread_join(thread, NULL);
	is_u64(lw_load_acquire(&sandbox_state), 2, "and gets the lock");
	ok(sandbox_cpu_ns < 100 * 1000000, "200 ms of waiting cost %lld us of processor",
		(long long)sandbox_cpu_ns / 1000);
}

int main(void)
{
	lw_lock_acquire(&early_lock);
	is_u64(nr_early_entries, 4, "entered twice in .preinit_array and twice in a constructor");
	lw_lock_release(&early_lock);
	test_counted_entry();
	test_exclusion();
	test_interrupted_wait();
	test_handler();
	test_fork();
	if (!HAS_SANITIZER)
		test_sandbox();
	return done();
}
