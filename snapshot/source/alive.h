/* SPDX-License-Identifier: MIT */
/*
 * alive.h - a process that is watched: does it live, is it still the same program, how does it fare.
 *
 * It is held by a pidfd where the kernel has them, so that a number that was given to another process
 * is never taken for it.
 */
#ifndef LW_SNAPSHOT_ALIVE_H
#define LW_SNAPSHOT_ALIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/share/region.h"

struct alive {
	pid_t pid;
	int pidfd;		/* -1 none */
	int shmid;		/* its region */
	bool was_alive;		/* when we came */
	bool was_marked;	/* its region for removal, when we came */
	char exe[LW_EXE_BYTES]; /* its program when we came; "" unknown */
};

void alive_open(struct alive *alive, pid_t pid, int shmid, bool is_alive);
void alive_close(struct alive *alive);
bool alive_is_dead(const struct alive *alive);

/* Has it started another program? Then that, or the cleaner, takes its region away. */
bool alive_has_exec(const struct alive *alive);

/* The letter of its state in /proc, '?' unknown, and its resident memory, 0 unknown. */
void alive_look(const struct alive *alive, char *state, uint64_t *rss_bytes);

#endif
