/* SPDX-License-Identifier: MIT */
/*
 * reporter.h - running leakwatch-snapshot on the regions of the dead, a few at a time.
 *
 * Each run keeps the segment attached until it is over, so that anyone who looks sees by the
 * kernel's count of attachments that somebody is at it. A run is bounded in time.
 */
#ifndef LW_CLEANER_REPORTER_H
#define LW_CLEANER_REPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/share/region.h"

/* argv0: where we were found ourselves, and so perhaps the reporter. */
void reporter_init(const char *argv0);

bool reporter_is_wanted(const struct lw_region_header *copy);

/* Did the launcher stay as its parent, to report a killed program itself? */
bool reporter_is_launcher(const struct lw_region_header *copy);

/* Is there room for one more run? */
bool reporter_has_room(void);

/*
 * Starts one, for which there must be room. signal 0: unknown. map: the attached segment, taken over.
 * One that fails is started once more; without any, the raw report is written.
 */
void reporter_start(
	int shmid, const struct lw_region_header *copy, int signal, struct lw_region_header *map);

/* Ends what is over: marks the region as reported and removes it. Returns how many still run. */
unsigned reporter_reap(uint64_t now_ns);

bool reporter_has(int shmid);

#endif
