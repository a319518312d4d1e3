/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - prctl() and syscall(), interposed to learn that the program enters a seccomp sandbox,
 * or becomes the one that adopts orphans.
 *
 * Both pass straight through to the kernel, as libc's do. From PR_SET_SECCOMP and SYS_seccomp on
 * LeakWatch makes no system call of its own in this process (sandbox.h).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/record/track.h"
#include "preload/share/box.h"

int prctl(int option, ...);
long syscall(long number, ...);

static long finish(long result)
{
	if (!lw_sys_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

static long enter_sandbox(long number, const long *a)
{
	uint32_t before = lw_load(&lw_sandbox_is_on);
	long result;

	lw_track_prepare_sandbox();
	lw_store(&lw_sandbox_is_on, 1); /* before: a strict one allows nothing afterwards */
	result = lw_syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (lw_sys_failed(result))
		lw_store(&lw_sandbox_is_on, before);
	return result;
}

/* Who adopts orphans is noted: a cleaner that one of its children starts must not be its child (cleaner.c). */
static long ordinary(long number, const long *a)
{
	long result = lw_syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]);

	if (number == SYS_prctl && a[0] == PR_SET_CHILD_SUBREAPER && !result)
		lw_box_set_reaper(a[1] != 0);
	return result;
}

LW_EXPORT int prctl(int option, ...)
{
	long a[6] = { option };
	va_list list;

	va_start(list, option);
	for (int i = 1; i < 5; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		return (int)finish(enter_sandbox(SYS_prctl, a));
	return (int)finish(ordinary(SYS_prctl, a));
}

static bool is_seccomp(long number, const long *a)
{
	if (number == SYS_prctl)
		return a[0] == PR_SET_SECCOMP;
	return number == SYS_seccomp && (a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER);
}

LW_EXPORT long syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (is_seccomp(number, a))
		return finish(enter_sandbox(number, a));
	return finish(ordinary(number, a));
}
