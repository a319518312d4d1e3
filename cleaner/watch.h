/* SPDX-License-Identifier: MIT */
/*
 * watch.h - one process that is not our child: is it still there, and how did it end?
 *
 * Held by pidfd. Without one (an old kernel, a sandbox, no descriptor left) it is asked after by
 * number: gone when the number is, when it names a process started at another time, or one that is
 * a zombie. /proc is believed only where it shows our own pid namespace, and where it cannot be
 * read a process counts as alive: the opposite mistake would report a living one.
 */
#ifndef LW_CLEANER_WATCH_H
#define LW_CLEANER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/share/region.h"

struct watch {
	int32_t pid;	      /* in our pid namespace */
	int fd;		      /* pidfd, -1 none */
	uint64_t start_ticks; /* of the region: a process that started later is another */
};

/* False: that process is gone. */
bool watch_open(struct watch *watch, int32_t pid, uint64_t start_ticks);
void watch_close(struct watch *watch);

/* Without a pidfd a handful of system calls; with one, one. */
bool watch_is_alive(const struct watch *watch);

/* Alive, and in possession of an address space: not on its way out. */
bool watch_has_memory(const struct watch *watch);

/* Does a process that we can see have another root, by mount or chroot? Unknown means no. */
bool watch_has_other_root(int32_t pid);

/*
 * How it ended, as wait() would say, false if nobody can tell. A zombie tells it through /proc, a
 * reaped one through its pidfd (Linux 6.15).
 */
bool watch_status(const struct watch *watch, int *status);

#endif
