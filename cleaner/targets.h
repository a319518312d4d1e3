/* SPDX-License-Identifier: MIT */
/*
 * targets.h - the regions there are, and what is to be done about each.
 *
 * The kernel's table of segments is the truth: it is walked again and again, and what we keep is
 * one small record for each of its slots. So nothing can be forgotten, a record cannot outlive its
 * segment, and memory is bounded by the number of segments in the system.
 */
#ifndef LW_CLEANER_TARGETS_H
#define LW_CLEANER_TARGETS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks at every segment: adopts regions, notices deaths, lets reports begin, removes what is done.
 * Returns the number of slots it went through.
 */
size_t targets_scan(uint64_t now_ns);

/* Is there any region we are needed for? Reports that run are reporter_reap()'s to know. */
bool targets_is_busy(void);

/* Did the last scan find anything new, or see anything end? */
/* What is known to be dead, without looking for more: for when a reporter has ended. */
void targets_bury_dead(uint64_t now_ns);

bool targets_is_restless(void);

/* What to wait for: a pidfd of each living target that has one. The array is ours. */
size_t targets_poll_set(struct pollfd **set);

/* Without a door we cannot be found: regions are marked to go with their processes. */
void targets_give_up(void);

#endif
