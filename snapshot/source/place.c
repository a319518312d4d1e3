/* SPDX-License-Identifier: MIT */
/* place.c - namespaces and sandboxes of a process, from /proc; see place.h. */
#include "snapshot/source/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TASKS = 4096, LINE_BYTES = 512, ENDING_MS = 20 };

/* The rest of a line "Name:\tvalue" of a status file; false: there is none. */
static bool status_line(const char *path, const char *name, char out[LINE_BYTES])
{
	FILE *file = fopen(path, "re");
	size_t name_bytes = strlen(name);
	char line[LINE_BYTES];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, name_bytes) || line[name_bytes] != ':')
			continue;
		memcpy(out, line + name_bytes + 1, sizeof(line) - name_bytes - 1);
		is_found = true;
	}
	if (file)
		(void)fclose(file);
	return is_found;
}

/* "\t4711\t12": the last number is the process's own. */
static pid_t innermost_pid(pid_t pid)
{
	char path[48], line[LINE_BYTES];
	const char *last;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!status_line(path, "NSpid", line))
		return pid;
	last = strrchr(line, '\t');
	return last && strtol(last, NULL, 10) > 0 ? (pid_t)strtol(last, NULL, 10) : pid;
}

uint32_t place_euid(pid_t pid, uint32_t if_unknown)
{
	char path[48], line[LINE_BYTES];
	uint32_t euid;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return status_line(path, "Uid", line) && sscanf(line, "%*u %" SCNu32, &euid) == 1 ? euid : if_unknown;
}

/* Have we and the process different namespaces of this kind? Unknown counts as no. */
static bool is_other(pid_t pid, const char *kind)
{
	char path[64], own[64] = "", its[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (readlink(path, own, sizeof(own) - 1) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	if (readlink(path, its, sizeof(its) - 1) < 0)
		return false;
	return strcmp(own, its) != 0;
}

static int enter(pid_t pid, const char *kind, int type)
{
	char path[64];
	int fd, err = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (setns(fd, type) < 0)
		err = -errno;
	close(fd);
	return err;
}

bool place_enter(pid_t pid, struct place *place, struct source_error *error)
{
	int err;

	*place = (struct place){.pid = pid,
		.inner_pid = innermost_pid(pid),
		.has_common_pids = !is_other(pid, "pid")};
	if (!is_other(pid, "ipc"))
		return true;
	err = enter(pid, "ipc", CLONE_NEWIPC);
	if (err == -EPERM && is_other(pid, "user") && !enter(pid, "user", CLONE_NEWUSER))
		err = enter(pid, "ipc", CLONE_NEWIPC);
	if (err)
		(void)snprintf(error->text, sizeof(error->text),
			"process %d has an IPC namespace of its own, which cannot be entered: %s", (int)pid,
			strerror(-err));
	return !err;
}

/* How many filters of system calls there are; -1 unknown. */
static long nr_filters(const char *path)
{
	char line[LINE_BYTES];

	if (!status_line(path, "Seccomp", line))
		return 0; /* a kernel without */
	if (strtol(line, NULL, 10) == 0)
		return 0;
	return status_line(path, "Seccomp_filters", line) ? strtol(line, NULL, 10) : -1;
}

/* A thread on its way out: it has no namespace for children any more, and will have none. */
static bool is_task_ending(pid_t pid, const char *task)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	char path[96], line[LINE_BYTES];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.10s/status", (int)pid, task);
	for (int i = 0; i < ENDING_MS; i++) {
		if (!status_line(path, "State", line) || strpbrk(line, "ZX"))
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static const char *task_forbids(pid_t pid, const char *task)
{
	char path[96], own[64] = "", next[64] = "";
	int err = 0;
	long nr;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.10s/status", (int)pid, task);
	nr = nr_filters(path);
	/* those of a container are on us too, and let programs start threads */
	if (nr && (nr < 0 || nr > nr_filters("/proc/self/status")))
		return is_task_ending(pid, task) ? NULL : "it filters its system calls";
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.10s/ns/pid", (int)pid, task);
	if (readlink(path, own, sizeof(own) - 1) < 0)
		return is_task_ending(pid, task) ? NULL : "its namespaces are hidden from us";
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.10s/ns/pid_for_children", (int)pid, task);
	if (readlink(path, next, sizeof(next) - 1) < 0)
		err = errno;
	if (err && is_task_ending(pid, task))
		return NULL;
	/* there is none yet, says the kernel, of a namespace whose first process is still to come */
	if (err && err != ENOENT)
		return "its namespaces are hidden from us";
	return strcmp(own, next) ? "its children go to another pid namespace" : NULL;
}

const char *place_forbids_helper(pid_t pid)
{
	const struct dirent *entry;
	const char *why = NULL;
	char path[48];
	int nr = 0;
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return "its threads are hidden from us";
	while (!why && nr++ < MAX_TASKS && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			why = task_forbids(pid, entry->d_name);
	(void)closedir(tasks);
	return why;
}
