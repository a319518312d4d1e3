/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - can LeakWatch see into a program? Asked by the launcher before it runs it.
 *
 * The loader ignores LD_PRELOAD in silence where it cannot work (static, setuid) or complains in its
 * own words (another ELF class), and a sanitized program would abort. What is read from the file is
 * believed by nobody: each offset and count is bounded, and what cannot be read or understood is
 * left for execve() to judge.
 */
#ifndef LW_LAUNCH_INSPECT_H
#define LW_LAUNCH_INSPECT_H

#include <stdbool.h>
#include <limits.h>
#include <stddef.h>

enum lw_inspect_sight {
	LW_INSPECT_WATCHABLE,
	LW_INSPECT_STATIC,
	LW_INSPECT_PRIVILEGED,
	LW_INSPECT_FOREIGN,
	LW_INSPECT_ASAN,
};

enum { LW_INSPECT_LINE_BYTES = 256 }; /* first line of a script, as much as the kernel reads */

/* A script is as visible as what runs it. */
enum lw_inspect_sight lw_inspect(const char *path);

/* An ELF file for the processor and class this launcher is built for. */
bool lw_inspect_is_our_kind(const char *path);

/* One sentence with %s for the program's name. */
const char *lw_inspect_why_not(enum lw_inspect_sight sight);

/* Where this program lies, also without /proc; false: not to be found. */
bool lw_inspect_own_path(char path[PATH_MAX]);

/* The first line of the file, without newline; false if it cannot be read. */
bool lw_inspect_first_line(const char *path, char line[LW_INSPECT_LINE_BYTES], size_t *nr_bytes);

#endif
