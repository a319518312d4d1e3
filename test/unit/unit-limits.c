/* SPDX-License-Identifier: MIT */
/*
 * unit-limits.c - which hard limits are too low for a cleaner, and what can be raised, with the
 * privilege and without it. Each in a child, whose limits are lost with it.
 */
#include "preload/share/limits.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/tap.h"

enum { CANNOT_LIMIT = 100 };

static const struct {
	const char *name;
	enum lw_limit which;
	int resource;
	rlim_t low, fair;
} rows[] = {
	{ "open files", LW_LIMIT_FILES, RLIMIT_NOFILE, 7, 64 },
	{ "no open file", LW_LIMIT_FILES, RLIMIT_NOFILE, 0, 100 },
	{ "file size", LW_LIMIT_FILE_BYTES, RLIMIT_FSIZE, 0, 1 << 30 },
	{ "stack", LW_LIMIT_STACK_BYTES, RLIMIT_STACK, 64 << 10, 2 << 20 },
	{ "address space", LW_LIMIT_SPACE_BYTES, RLIMIT_AS, 200 << 20, (rlim_t)4 << 30 },
	{ "data", LW_LIMIT_DATA_BYTES, RLIMIT_DATA, 20 << 20, 1 << 30 },
	{ "time", LW_LIMIT_CPU_S, RLIMIT_CPU, 30, 3600 },
};

/* May the hard limits of this process be raised? Not by what it may do in a user namespace. */
static bool may_raise(void)
{
	struct rlimit files, more;
	bool may;

	(void)getrlimit(RLIMIT_CORE, &files);
	more = files;
	if (files.rlim_max == RLIM_INFINITY) {
		more.rlim_max = more.rlim_cur = 1;
		(void)setrlimit(RLIMIT_CORE, &more);
	}
	more.rlim_max = RLIM_INFINITY;
	may = setrlimit(RLIMIT_CORE, &more) == 0;
	return may;
}

static void drop_privilege(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	data[0].inheritable &= ~(1u << CAP_SYS_RESOURCE);
	(void)syscall(SYS_capset, &head, data);
}

/* What is poor with this hard limit, after an attempt to raise it if that is asked for. */
static uint32_t poor_with(int resource, rlim_t hard, bool is_raised, bool is_privileged)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit limit = { hard, hard };

		if (!is_privileged)
			drop_privilege();
		if (setrlimit(resource, &limit))
			_exit(CANNOT_LIMIT);
		if (is_raised)
			lw_limits_raise();
		_exit((int)lw_limits_poor());
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : ~0u;
}

static void test_soft(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit limit;

		(void)getrlimit(RLIMIT_FSIZE, &limit);
		limit.rlim_cur = 0;
		if (setrlimit(RLIMIT_FSIZE, &limit) || lw_limits_poor() & 1u << LW_LIMIT_FILE_BYTES)
			_exit(1);
		lw_limits_raise();
		_exit(getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != limit.rlim_max);
	}
	(void)waitpid(pid, &status, 0);
	is_u64((uint64_t)status, 0, "a soft limit is not poverty, and is raised to the hard one");
}

int main(void)
{
	uint32_t before = lw_limits_poor();
	bool can_raise = false;
	int status = 0;
	pid_t pid = fork();

	_Static_assert(1u << LW_NR_LIMITS <= CANNOT_LIMIT, "a set is an exit status");
	if (pid == 0)
		_exit(may_raise());
	(void)waitpid(pid, &status, 0);
	can_raise = WIFEXITED(status) && WEXITSTATUS(status);
	if (before)
		return tap_skip_all("the limits are too low here");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t bit = 1u << rows[i].which;

		is_u64(poor_with(rows[i].resource, rows[i].low, false, true), bit, "%s: too low", rows[i].name);
		is_u64(poor_with(rows[i].resource, rows[i].fair, false, true), 0, "%s: enough", rows[i].name);
		is_u64(poor_with(rows[i].resource, rows[i].low, true, false), bit,
			"%s: stays too low without the privilege", rows[i].name);
		if (can_raise)
			is_u64(poor_with(rows[i].resource, rows[i].low, true, true), 0,
				"%s: is raised with it", rows[i].name);
	}
	test_soft();
	return done();
}
