/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - starting one of our own programs from inside the target, as an orphan.
 *
 * Two raw clones that share memory and suspend the caller, then exec: no page tables are copied, no
 * atfork handler runs, no SIGCHLD is sent, and the target's wait() never sees a child. The new process has all
 * signals blocked (it unblocks them itself), every descriptor closed but those named, its soft
 * limits raised to the hard ones, those raised where they are too low and it is allowed, and an environment without LD_* and without our options.
 */
#ifndef LW_LIVE_SPAWN_H
#define LW_LIVE_SPAWN_H

#include "preload/base/base.h"

enum { LW_SPAWN_PATH_BYTES = 2048 };

/* What must be allowed once the limits are raised, else it is not started: -EMFILE, -EFBIG. */
struct lw_spawn_needs {
	uint32_t files;	 /* open descriptors */
	uint32_t limits; /* a mask of enum lw_limit, none of which may be poor */
};

/* Remembers where our programs are looked for: `programs`, beside the library, the build tree, the prefix. */
void lw_spawn_init(const char *programs);

/* The path of one of our programs; false: it is not there. */
bool lw_spawn_find(const char *name, char *out, size_t out_bytes);

/*
 * argv[0] is the path. stdin_fd (or -1) becomes its descriptor 0; keep_fd (or -1) stays open under its number, as does descriptor 2 if
 * keep_stderr. Returns the pid of the orphan, or -errno when it could not be started.
 */
int lw_spawn(const char *const *argv, int stdin_fd, int keep_fd, bool keep_stderr, struct lw_spawn_needs needs);

/*
 * The same as a child of this process, for one that ends and whose orphans would be given to a watched ancestor.
 * SIGCHLD is blocked in this thread until lw_spawn_reap(), which is to be called whatever this returns; *before: what
 * was blocked until then.
 */
int lw_spawn_child(const char *const *argv, int stdin_fd, int keep_fd, bool keep_stderr, struct lw_spawn_needs needs,
		uint64_t *before);

/* Takes the child and its SIGCHLD away; one that does not end is not waited for. pid < 0: there is none. */
void lw_spawn_reap(int pid, bool does_end, uint64_t before);

#endif
