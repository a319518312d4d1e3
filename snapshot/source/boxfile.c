/* SPDX-License-Identifier: MIT */
/*
 * boxfile.c - a region in a file (option black_box) as a source.
 *
 * The file is read, not mapped: one that is cut while it is read must not end this program with
 * SIGBUS. The bytes are as hostile as any segment's and take the same checks.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/source/farewell.h"

enum { MAX_FILE_BYTES = 1 << 30 };

bool source_is_boxfile(int fd)
{
	uint64_t magic = 0;

	return pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == LW_REGION_MAGIC;
}

static bool fail(struct source_error *error, const char *name, const char *why)
{
	(void)snprintf(error->text, sizeof(error->text), "cannot read %s: %s", name, why);
	return false;
}

/* The whole file in memory; NULL and *why. */
static void *read_whole(int fd, size_t *nr_bytes, const char **why)
{
	struct stat file;
	size_t used = 0;
	char *bytes;
	ssize_t got;

	*why = "it is no region of a size we know";
	if (fstat(fd, &file) || file.st_size <= 0 || file.st_size > MAX_FILE_BYTES)
		return NULL;
	*nr_bytes = (size_t)file.st_size;
	/* never smaller than a header: the check reads one */
	bytes = calloc(1, *nr_bytes > sizeof(struct lw_region_header) ? *nr_bytes
								      : sizeof(struct lw_region_header));
	*why = "out of memory";
	while (bytes && used < *nr_bytes && (got = pread(fd, bytes + used, *nr_bytes - used, (off_t)used)) > 0)
		used += (size_t)got;
	*nr_bytes = used;
	return bytes;
}

/* Has that number another name than the program? The kernel keeps 15 letters. */
static bool has_other_name(const struct lw_region_header *region)
{
	char path[48], name[32] = "", exe[LW_EXE_BYTES + 1];
	const char *slash;
	FILE *comm;

	(void)snprintf(exe, sizeof(exe), "%.*s", LW_EXE_BYTES, region->exe);
	slash = strrchr(exe, '/');
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)region->pid);
	comm = fopen(path, "re");
	if (!comm)
		return false;
	if (!fgets(name, sizeof(name), comm))
		name[0] = '\0';
	(void)fclose(comm);
	name[strcspn(name, "\n")] = '\0';
	return name[0] && strncmp(name, slash ? slash + 1 : exe, 15);
}

/*
 * Does nobody of that number have the file mapped? The number may be that of another pid namespace, such
 * as 1. Its device is left aside: on some file systems stat() and the kernel's list differ in it.
 */
static bool is_unmapped(const struct lw_region_header *region, int fd)
{
	char path[48], *line = NULL;
	bool is_found = false;
	size_t max_bytes = 0;
	struct stat stat;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)region->pid);
	maps = fstat(fd, &stat) ? NULL : fopen(path, "re");
	if (!maps) /* not for us to see */
		return has_other_name(region);
	while (!is_found && getline(&line, &max_bytes, maps) > 0) {
		unsigned long inode;

		is_found = sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == stat.st_ino;
	}
	free(line);
	(void)fclose(maps);
	return !is_found;
}

/* The process that made it is no more, as far as this pid namespace can tell. */
static bool is_gone(const struct lw_region_header *region, int fd)
{
	uint64_t start_ticks;
	int32_t ppid;

	if (kill(region->pid, 0) < 0 && errno == ESRCH)
		return true;
	if (lw_region_proc_stat(region->pid, &start_ticks, &ppid) &&
		lw_region_is_reused(region->start_ticks, start_ticks))
		return true;
	return is_unmapped(region, fd);
}

bool source_boxfile(
	int fd, const char *name, lw_emit_sink_fn *sink, void *context, struct source_error *error)
{
	struct farewell farewell = {.sink = sink, .context = context};
	const char *why = NULL;
	size_t nr_bytes = 0;
	struct lw_region_header *region = read_whole(fd, &nr_bytes, &why);
	struct timespec now;
	bool is_whole;

	if (!region)
		return fail(error, name, why);
	why = lw_region_check(region, nr_bytes);
	if (why) {
		free(region);
		return fail(error, name, why);
	}
	farewell.flags = is_gone(region, fd) ? LW_BYE_GONE : 0;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	is_whole = lw_emit_region(region, nr_bytes,
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, farewell_record, &farewell);
	free(region);
	return is_whole || fail(error, name, "its tables cannot be read");
}
