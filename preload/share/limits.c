/* SPDX-License-Identifier: MIT */
/* limits.c - what is enough of each resource, and getting it; see limits.h. */
#include "preload/share/limits.h"

#include <sys/resource.h>

#include "preload/base/sys.h"

#define MIB (UINT64_C(1) << 20)

/* By enum lw_limit. */
static const struct {
	int resource;
	uint64_t least;	 /* a cleaner of less is poor */
	uint64_t enough; /* what a lower hard limit is raised to */
} rows[LW_NR_LIMITS] = {
	/* its reporters', and a pidfd for each of some targets; enough is still below any fs.nr_open in use */
	[LW_LIMIT_FILES] = {RLIMIT_NOFILE, 64, 4096},
	[LW_LIMIT_FILE_BYTES] = {RLIMIT_FSIZE, 64 * MIB, RLIM_INFINITY}, /* a report of very many sites */
	[LW_LIMIT_STACK_BYTES] = {RLIMIT_STACK, MIB, 8 * MIB},
	[LW_LIMIT_SPACE_BYTES] = {RLIMIT_AS, 1024 * MIB, RLIM_INFINITY}, /* debug information is mapped */
	[LW_LIMIT_DATA_BYTES] = {RLIMIT_DATA, 256 * MIB, RLIM_INFINITY},
	/* past the hard one it is killed; reading debug information takes seconds */
	[LW_LIMIT_CPU_S] = {RLIMIT_CPU, 600, RLIM_INFINITY},
};

static bool get(int resource, struct rlimit *limit)
{
	return lw_syscall(SYS_prlimit64, 0, resource, 0, limit) == 0;
}

static bool set(int resource, uint64_t soft, uint64_t hard)
{
	const struct rlimit limit = {soft, hard};

	return lw_syscall(SYS_prlimit64, 0, resource, &limit, 0) == 0;
}

uint32_t lw_limits_poor(void)
{
	struct rlimit limit;
	uint32_t poor = 0;

	for (int i = 0; i < LW_NR_LIMITS; i++) {
		if (get(rows[i].resource, &limit) && limit.rlim_max < rows[i].least)
			poor |= 1u << i;
	}
	return poor;
}

void lw_limits_raise(void)
{
	struct rlimit limit;

	for (int i = 0; i < LW_NR_LIMITS; i++) {
		if (!get(rows[i].resource, &limit) || (limit.rlim_max < rows[i].least &&
				set(rows[i].resource, rows[i].enough, rows[i].enough)))
			continue;
		(void)set(rows[i].resource, limit.rlim_max, limit.rlim_max);
	}
}

uint64_t lw_limits_hard(enum lw_limit which)
{
	struct rlimit limit;

	return get(rows[which].resource, &limit) ? limit.rlim_max : UINT64_MAX;
}
