/* SPDX-License-Identifier: MIT */
/* scan_tasks.c - listing threads by getdents; see scan_tasks.h. */
#include "preload/live/scan_tasks.h"

#include <string.h>

#include "preload/base/sys.h"

enum { LIST_BYTES = 16384, PATH_BYTES = 64, STAT_BYTES = 1024 };

struct entry { /* struct linux_dirent64 */
	uint64_t ino, off;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static char list[LIST_BYTES] LW_ROOM __attribute__((aligned(8)));

static char *put_number(char *at, uint32_t value)
{
	char digits[10];
	int nr = 0;

	do
		digits[nr++] = (char)('0' + value % 10);
	while ((value /= 10) != 0);
	while (nr)
		*at++ = digits[--nr];
	*at = '\0';
	return at;
}

static int32_t parse_number(const char *text)
{
	int32_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return value;
}

int lw_scan_tasks_visit(int32_t pid, lw_scan_task_fn *visit, void *context)
{
	char path[PATH_BYTES] = "/proc/";
	int nr = 0, fd, ret = 0;
	long got = 0;

	strcpy(put_number(path + 6, (uint32_t)pid), "/task");
	fd = lw_sys_open(path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	while (ret >= 0 && (got = lw_syscall(SYS_getdents64, fd, list, sizeof(list))) > 0) {
		for (long at = 0; at < got && ret >= 0;) {
			const struct entry *entry = (const struct entry *)(const void *)(list + at);
			int32_t tid = parse_number(entry->name);

			at += entry->bytes;
			ret = tid > 0 ? visit(context, tid) : 0;
			nr += ret > 0;
		}
	}
	lw_sys_close(fd);
	return ret < 0 ? ret : got < 0 ? (int)got : nr;
}

bool lw_scan_task_read(int32_t pid, int32_t tid, const char *name, char *text, size_t max_bytes)
{
	char path[PATH_BYTES] = "/proc/";
	size_t used = 0;
	long got;
	int fd;

	stpcpy(put_number(stpcpy(put_number(path + 6, (uint32_t)pid), "/task/"), (uint32_t)tid), name);
	fd = lw_sys_open(path, O_RDONLY);
	if (fd < 0)
		return false;
	while (used + 1 < max_bytes && (got = lw_sys_read(fd, text + used, max_bytes - 1 - used)) > 0)
		used += (size_t)got;
	lw_sys_close(fd);
	text[used] = '\0';
	return used > 0;
}

bool lw_scan_task_is_gone(int32_t pid, int32_t tid)
{
	static char text[STAT_BYTES];
	const char *name_end;

	if (!lw_scan_task_read(pid, tid, "/stat", text, sizeof(text)))
		return false;
	name_end = strrchr(text, ')'); /* the name may hold anything */
	return name_end && (name_end[2] == 'Z' || name_end[2] == 'X');
}

bool lw_scan_may_repeat(int64_t call)
{
	return call >= 0 && call != SYS_close && call != SYS_connect;
}
