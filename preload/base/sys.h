/* SPDX-License-Identifier: MIT */
/*
 * sys.h - the system calls we make inside the target, raw: no errno, no cancellation point, no
 * interposition by the target's own wrappers. Each returns what the kernel returns (-errno on
 * failure); mapping calls say failed with lw_sys_failed().
 */
#ifndef LW_BASE_SYS_H
#define LW_BASE_SYS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/sys_x86_64.h"

#define lw_syscall(nr, ...) LW_SYS_PICK(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(nr, __VA_ARGS__)
#define LW_SYS_PICK(a, b, c, d, e, f, n, ...) LW_SYS_##n
#define LW_SYS_A(x) (long)(x)
#define LW_SYS_1(nr, a) lw_syscall6(nr, LW_SYS_A(a), 0, 0, 0, 0, 0)
#define LW_SYS_2(nr, a, b) lw_syscall6(nr, LW_SYS_A(a), LW_SYS_A(b), 0, 0, 0, 0)
#define LW_SYS_3(nr, a, b, c) lw_syscall6(nr, LW_SYS_A(a), LW_SYS_A(b), LW_SYS_A(c), 0, 0, 0)
#define LW_SYS_4(nr, a, b, c, d)                                                                   \
	lw_syscall6(nr, LW_SYS_A(a), LW_SYS_A(b), LW_SYS_A(c), LW_SYS_A(d), 0, 0)
#define LW_SYS_5(nr, a, b, c, d, e)                                                                \
	lw_syscall6(nr, LW_SYS_A(a), LW_SYS_A(b), LW_SYS_A(c), LW_SYS_A(d), LW_SYS_A(e), 0)
#define LW_SYS_6(nr, a, b, c, d, e, f)                                                             \
	lw_syscall6(nr, LW_SYS_A(a), LW_SYS_A(b), LW_SYS_A(c), LW_SYS_A(d), LW_SYS_A(e), LW_SYS_A(f))

/* Did a call that returns an address or a count fail? */
LW_INLINE bool lw_sys_failed(long ret)
{
	return (unsigned long)ret > -4096ul;
}

LW_INLINE int32_t lw_sys_getpid(void)
{
	return (int32_t)lw_syscall(SYS_getpid, 0);
}

LW_INLINE int32_t lw_sys_gettid(void)
{
	return (int32_t)lw_syscall(SYS_gettid, 0);
}

LW_INLINE int lw_sys_open(const char *path, int flags)
{
	return (int)lw_syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

LW_INLINE long lw_sys_read(int fd, void *buf, size_t bytes)
{
	return lw_syscall(SYS_read, fd, buf, bytes);
}

LW_INLINE long lw_sys_write(int fd, const void *buf, size_t bytes)
{
	return lw_syscall(SYS_write, fd, buf, bytes);
}

LW_INLINE void lw_sys_close(int fd)
{
	(void)lw_syscall(SYS_close, fd);
}

/* Is the 8-byte word at `address` readable? The kernel copies the mask before it looks at `how`. */
LW_INLINE bool lw_sys_is_readable(uintptr_t address)
{
	/* no address is "no mask" to the kernel, which then looks at nothing */
	return address && lw_syscall(SYS_rt_sigprocmask, -1, address, 0, 8) != -14 /* EFAULT */;
}

/* All signals off for a moment, and back. */
LW_INLINE void lw_sys_block_signals(uint64_t *before)
{
	uint64_t all = ~UINT64_C(0);

	*before = 0;
	(void)lw_syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, before, sizeof(all));
}

LW_INLINE void lw_sys_restore_signals(const uint64_t *before)
{
	(void)lw_syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, before, 0, sizeof(*before));
}

/* With all signals blocked: takes back a SIGPIPE that was raised meanwhile, unless it was blocked before. */
LW_INLINE void lw_sys_take_pipe_signal(uint64_t before)
{
	const uint64_t pipe_bit = UINT64_C(1) << (13 /* SIGPIPE */ - 1);
	struct timespec now = { 0 };

	if (!(before & pipe_bit))
		(void)lw_syscall(SYS_rt_sigtimedwait, &pipe_bit, 0, &now, 8);
}

LW_INLINE void lw_sys_sleep_ms(uint32_t ms)
{
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)lw_syscall(SYS_nanosleep, &pause, 0);
}

/* clock_gettime comes from the vdso: no system call, no errno on success. */
LW_INLINE uint64_t lw_sys_clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		return 0;
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
