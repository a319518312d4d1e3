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

/* The process that made it is no more, as far as this pid namespace can tell. */
static bool is_gone(const struct lw_region_header *region)
{
	uint64_t start_ticks;
	int32_t ppid;

	if (kill(region->pid, 0) < 0 && errno == ESRCH)
		return true;
	return lw_region_proc_stat(region->pid, &start_ticks, &ppid) &&
	       lw_region_is_reused(region->start_ticks, start_ticks);
}

bool source_boxfile(int fd, const char *name, lw_emit_sink_fn *sink, void *context, bool *gone,
	struct source_error *error)
{
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
	*gone = is_gone(region);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	is_whole = lw_emit_region(region, nr_bytes,
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, sink, context);
	free(region);
	return is_whole || fail(error, name, "its tables cannot be read");
}
