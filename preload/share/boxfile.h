/* SPDX-License-Identifier: MIT */
/*
 * boxfile.h - the region in a file instead of a SysV segment (option black_box).
 *
 * For a container: its IPC namespace dies with process 1, a file on a volume does not. All blocks of the
 * file are reserved when it is made: a sparse file on a disk that fills up would kill the target
 * with SIGBUS at the first write to a new page. The file is new (an old one of that name is
 * unlinked, not emptied: another process may have it mapped), mode 0600, never a symlink's target.
 */
#ifndef LW_SHARE_BOXFILE_H
#define LW_SHARE_BOXFILE_H

#include "preload/share/options.h"
#include "preload/share/region.h"

enum { LW_BOXFILE_MAX_SITES = 32768 }; /* about 27 MiB */

/* Makes and maps the file; NULL and *refusal, a negative errno. */
struct lw_region_header *lw_boxfile_map(const char *path_template, const struct lw_region_header *mine,
		uint64_t bytes, int *refusal);

/* The path of the file this process has its region in; "" if it is in none. */
const char *lw_boxfile_path(void);

#endif
