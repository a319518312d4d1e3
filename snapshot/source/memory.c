/* SPDX-License-Identifier: MIT */
/*
 * memory.c - the room left in the memory cgroups of a process (version 2 and 1) and in the machine.
 *
 * A limit may stand in any folder above the one of the process; each is looked at. What cannot be
 * read, because a container hides it or the limit is "max", is no limit.
 */
#include "snapshot/source/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 + 64 };

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool read_number(const char *folder, const char *name, uint64_t *number)
{
	char path[PATH_BYTES + 64];
	FILE *file;
	bool is_read;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_read = fscanf(file, "%" SCNu64, number) == 1;
	(void)fclose(file);
	return is_read;
}

static uint64_t left_in(const char *folder, const char *limit_name, const char *used_name)
{
	uint64_t limit, used;

	if (!read_number(folder, limit_name, &limit) || !read_number(folder, used_name, &used))
		return UINT64_MAX;
	return limit > used ? limit - used : 0;
}

/* In this folder and those above it, up to the mount point. */
static uint64_t left_in_all(const char *mount, const char *inside, bool is_v2)
{
	char folder[PATH_BYTES];
	uint64_t left = UINT64_MAX;

	if (snprintf(folder, sizeof(folder), "%s%s", mount, inside) >= (int)sizeof(folder))
		return left;
	while (strlen(folder) >= strlen(mount)) {
		left = least(left, is_v2 ? left_in(folder, "memory.max", "memory.current")
					 : left_in(folder, "memory.limit_in_bytes",
						   "memory.usage_in_bytes"));
		if (!strrchr(folder, '/'))
			break;
		*strrchr(folder, '/') = '\0';
	}
	return left;
}

/* Lines like "0::/system.slice/x" (version 2) or "5:memory:/x". */
static uint64_t left_in_cgroups(pid_t pid)
{
	char path[64] = "/proc/self/cgroup", line[PATH_BYTES];
	uint64_t left = UINT64_MAX;
	FILE *file;

	if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *inside = strstr(line, ":/");

		line[strcspn(line, "\n")] = '\0';
		if (!inside)
			continue;
		if (!strncmp(line, "0::/", 4))
			left = least(left, left_in_all("/sys/fs/cgroup", inside + 1, true));
		else if (strstr(line, ":memory:/"))
			left = least(left, left_in_all("/sys/fs/cgroup/memory", inside + 1, false));
	}
	if (file)
		(void)fclose(file);
	return left;
}

static uint64_t left_in_machine(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t left_kib = UINT64_MAX >> 10;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &left_kib) == 1)
			break;
	if (file)
		(void)fclose(file);
	return left_kib << 10;
}

uint64_t memory_left_bytes(pid_t pid)
{
	uint64_t left = least(left_in_cgroups(pid), left_in_machine());

	return left >= UINT64_MAX >> 10 << 10 ? 0 : left;
}
