/* SPDX-License-Identifier: MIT */
/*
 * output.h - where finished reports go, without harm to whoever owns the place.
 */
#ifndef LW_SNAPSHOT_OUTPUT_H
#define LW_SNAPSHOT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum output_way {
	OUTPUT_APPEND,	 /* behind what is there */
	OUTPUT_IN_PLACE, /* an existing file of ours is emptied and filled: a log that is watched */
	OUTPUT_REPLACE,	 /* written beside it and renamed: a reader sees the old or the new, never
			    half */
};

/*
 * 0 or -errno. A symbolic link at the end of the path is never followed, one in a folder that
 * others may write to neither; an existing file is only touched if it is a plain file of ours with
 * one name. Mode 0600.
 */
int output_file(const char *path, enum output_way way, const char *text, size_t nr_bytes);

/*
 * Keeps the descriptors that output_file() needs, so that what is read before it (files of debug information)
 * cannot use up a low limit: names are missing then, not the report. They are kept anew after each file.
 */
void output_reserve(void);

/* What -errno of output_file means, for people. */
const char *output_error(int err);

/*
 * Writes to a descriptor that is shared with the target: whatever stands behind it (a full pipe, a
 * stopped terminal), at most OUTPUT_PATIENCE_MS pass in all calls together. False: not all of it.
 */
enum { OUTPUT_PATIENCE_MS = 2000 };
bool output_shared(int fd, const char *text, size_t nr_bytes);

/* Is descriptor fd the file with these numbers? */
bool output_is_file(int fd, uint64_t dev, uint64_t ino);

#endif
