/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the target's side of being watched: starting the helper when a viewer has asked.
 *
 * The helper is a process of its own that shares our memory (raw clone: CLONE_VM, exit signal 0), so
 * the program stays single-threaded, wait() sees no child, and what it holds survives a kill. It
 * shares the table of descriptors only until its first system call, which leaves it and takes no
 * copy: no file of ours is held open by it for a moment. It is started from the allocation path,
 * where that is cold anyway, and never waited for.
 */
#ifndef LW_LIVE_SERVE_H
#define LW_LIVE_SERVE_H

#include "preload/base/base.h"

/* Looks whether a viewer has asked, or a helper has ended. Now and then, by any thread, inside a hook. */
void lw_serve_look(void);

/* In a forked child: the helper is the parent's. */
void lw_serve_forked(void);

/*
 * After unshare(CLONE_NEWPID) the next child would be the first process of a new namespace, which
 * dies with it. Nothing can be told without /proc: then none is to be started.
 */
bool lw_serve_may_clone(void);

#endif
