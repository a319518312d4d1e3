/* SPDX-License-Identifier: MIT */
/*
 * scan_memory.c - MemAvailable, and the limits of the control groups (version 2 and 1) from ours to the root. What a group
 * keeps of files that nobody has looked at lately goes before anybody is killed, so it counts as free.
 */
#include "preload/live/scan_memory.h"

#include <string.h>

#include "preload/base/sys.h"
#include "preload/share/box.h"
#include "preload/share/emit.h"

enum {
	SMALL_BYTES = 16 << 20, /* not worth the questions */
	SPARE = 8,		/* an eighth of what is free is left to others */
	BYTES_A_BLOCK = 26,
	TEXT_BYTES = 4096,
	PATH_BYTES = 1024,
};

static bool read_text(const char *path, char *text, size_t max_bytes)
{
	int fd = lw_sys_open(path, O_RDONLY);
	long got;

	if (fd < 0)
		return false;
	got = lw_sys_read(fd, text, max_bytes - 1);
	lw_sys_close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static bool parse_number(const char *text, uint64_t *value)
{
	while (*text == ' ' || *text == '\t')
		text++;
	if (*text < '0' || *text > '9')
		return false;
	for (*value = 0; *text >= '0' && *text <= '9'; text++)
		*value = *value * 10 + (uint64_t)(*text - '0');
	return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t machine_left(void)
{
	char text[TEXT_BYTES];
	uint64_t kilobytes;
	const char *at;

	if (!read_text("/proc/meminfo", text, sizeof(text)))
		return UINT64_MAX;
	at = strstr(text, "MemAvailable:");
	return at && parse_number(at + 13, &kilobytes) ? kilobytes << 10 : UINT64_MAX;
}

static const struct version {
	const char *line; /* of /proc/self/cgroup: what stands before the path */
	const char *mount, *limit, *used, *files;
} versions[] = {
	{ "0::/", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file " },
	{ ":memory:/", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file " },
};

static bool read_number(char *path, size_t length, const char *name, uint64_t *value)
{
	char text[64];

	stpcpy(path + length, name);
	return read_text(path, text, sizeof(text)) && parse_number(text, value);
}

static uint64_t group_left(const struct version *version, char *path, size_t length)
{
	char text[TEXT_BYTES];
	uint64_t most, used, files = 0;
	const char *at;

	if (!read_number(path, length, version->limit, &most) || !read_number(path, length, version->used, &used))
		return UINT64_MAX;
	stpcpy(path + length, "/memory.stat");
	at = read_text(path, text, sizeof(text)) ? strstr(text, version->files) : NULL;
	if (!at || !parse_number(at + strlen(version->files), &files) || files > used)
		files = 0;
	used -= files;
	return used < most ? most - used : 0;
}

static uint64_t groups_left(const struct version *version)
{
	char text[PATH_BYTES], path[PATH_BYTES + 64];
	uint64_t left = UINT64_MAX;
	size_t length, root = strlen(version->mount);
	char *at;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return left;
	at = strstr(text, version->line);
	if (!at)
		return left;
	at += strlen(version->line) - 1;
	at[strcspn(at, "\n")] = '\0';
	stpcpy(stpcpy(path, version->mount), at);
	for (length = strlen(path); length >= root; length--) {
		if (path[length] == '/' || !path[length])
			left = least(left, group_left(version, path, length));
		path[length] = '\0';
		if (length == root)
			break;
	}
	return left;
}

bool lw_scan_has_memory(uint64_t needed_bytes)
{
	uint64_t left;

	if (needed_bytes < SMALL_BYTES)
		return true;
	left = machine_left();
	for (size_t i = 0; i < LW_ARRAY_LENGTH(versions); i++)
		left = least(left, groups_left(&versions[i]));
	return needed_bytes <= left - left / SPARE;
}

/* Tables of the scanner, its page tables, and pages the program writes to meanwhile, as a share of the heap. */
uint64_t lw_scan_needed_bytes(void)
{
	int64_t live = lw_load(&lw_box->live_bytes);
	uint64_t bytes = live > 0 ? (uint64_t)live : 0, blocks = 0;

	for (uint32_t site = 0; site < lw_load_acquire(&lw_own.nr_sites); site += 32) {
		uint32_t nr = lw_own.nr_sites - site < 32 ? lw_own.nr_sites - site : 32;
		struct lw_count sums[32];

		lw_emit_counts(lw_box, lw_own.total_bytes, site, nr, sums);
		for (uint32_t i = 0; i < nr; i++) {
			int64_t here = (int64_t)(sums[i].alloc_blocks - sums[i].freed_blocks);

			blocks += here > 0 ? (uint64_t)here : 0;
		}
	}
	return blocks * BYTES_A_BLOCK + bytes / 16 + (1 << 20);
}
