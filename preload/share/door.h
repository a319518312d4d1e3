/* SPDX-License-Identifier: MIT */
/*
 * door.h - how a watched process sees whether a cleaner is there, and lets it know of itself.
 *
 * A cleaner keeps a set of SysV semaphores, its door, under a key made from the user and from the
 * place, that is pid namespace and root mount: a cleaner of another place could not hold our
 * processes by pid, or would not write to the files they mean. LOCK is 1 while a cleaner has the
 * door, OPEN while it will look for regions once more before it goes. Both are raised with
 * SEM_UNDO, so the kernel lowers them however the cleaner ends: no pid is compared, so none can be
 * mistaken. MARK stays: it says that the set is a door.
 *
 * A region is its own registration: it exists before its process looks at the door, and the cleaner
 * looks for regions after each opening and after each closing of it (cleaner/main.c has the proof).
 * To knock only makes it look earlier, so that it holds the process before that can be gone. The
 * kernel says who raised the semaphore, and that he has not ended; and the signal is SIGURG, which
 * whoever does not expect it ignores.
 *
 * A set under one of our keys that is another user's, or of another size, mode or mark, is somebody
 * else's, or another version's: it is left alone, and the next key of the sequence taken.
 *
 * A cleaner inherits the hard limits of the process that started it. One whose limits are too low
 * (limits.h) to write anybody's report has another door, the one of the poor place: processes that
 * are as poor, which their regions say (LW_REGION_POOR), use it when no other cleaner is there, and
 * the poor cleaner sees to their regions alone, and only while no other cleaner does.
 */
#ifndef LW_SHARE_DOOR_H
#define LW_SHARE_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/share/region.h"

enum {
	LW_DOOR_LOCK, /* the semaphores of the set */
	LW_DOOR_OPEN,
	LW_DOOR_MARK,
	LW_DOOR_NR,
	LW_DOOR_KEYS = 8,
	LW_DOOR_MARK_VALUE = 0x4c00 + LW_REGION_VERSION, /* one cleaner, one version */
};

enum lw_door {
	LW_DOOR_IS_GONE,    /* no such set */
	LW_DOOR_IS_FOREIGN, /* not one of ours */
	LW_DOOR_IS_NEW,	    /* not marked yet: about to be taken by its maker, or somebody else's */
	LW_DOOR_IS_FREE,    /* ours, and nobody has it: its cleaner was killed */
	LW_DOOR_IS_CLOSED,  /* a cleaner has it, and may be going */
	LW_DOOR_IS_OPEN,
};

/* This process's place in one number. Without /proc its pid namespace is what it was when last asked. */
uint64_t lw_door_place(void);

/* The place whose door is the poor cleaner's. */
uint64_t lw_door_poor_place(uint64_t place);

int32_t lw_door_key(uint32_t uid, uint64_t place, unsigned attempt);

enum lw_door lw_door_look(int semid, uint32_t uid);

/* Is a cleaner there for this user, in this place? */
bool lw_door_is_open(uint32_t uid, uint64_t place);

/* Is one there or about to go, which looks for regions once more? */
bool lw_door_is_taken(uint32_t uid, uint64_t place);

/* Is one there, and lets it know that there is a new region. */
bool lw_door_knock(uint32_t uid, uint64_t place);

#endif
