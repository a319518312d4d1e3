/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the cleaner's side of the door: at most one cleaner has it, and none of the dead.
 *
 * One cleaner at a time, so the state is kept here. Every function is one atomic semop or semctl;
 * what they promise each other is told in main.c. A set removed behind our back (ipcrm, a logout)
 * shows as lock_is_held() == false.
 */
#ifndef LW_CLEANER_LOCK_H
#define LW_CLEANER_LOCK_H

#include <stdbool.h>

enum lock {
	LOCK_TAKEN,	/* we have the door, and it is open */
	LOCK_IS_SERVED, /* another cleaner has opened it since we were started */
	LOCK_FAILED,	/* no door is to be had: no semaphores here, or none left */
};

/* To be said first: our limits are too low for others' reports, and our door is the poor one (door.h). */
void lock_be_poor(void);
bool lock_is_poor(void);

/* Is there another, not poor, that sees to the regions, or will once more? */
bool lock_has_richer(void);

/* Waits, at most some seconds, while another cleaner is deciding whether to go. */
enum lock lock_take(void);

bool lock_is_held(void);

/* No process will count on us from now on; open again: they will. */
void lock_close(void);
void lock_open(void);

/* Removes doors that were left by cleaners of other places, which ended with their containers. */
void lock_sweep(void);

/* Removes the set; those who wait for it make a new one. */
void lock_remove(void);

#endif
