/* SPDX-License-Identifier: MIT */
/*
 * cleaner.h - seeing to it that a cleaner has this process's region.
 *
 * The region is there already, and is all the cleaner needs; so this only looks whether a cleaner's
 * door is open (about 3 us), and starts one if not, without waiting for it. Where none can be
 * started the segment is marked for removal: it goes with this process, and can until then still be
 * attached by its id, as the reporter at exit does. No output, no lock, no signal, no descriptor.
 */
#ifndef LW_LIVE_CLEANER_H
#define LW_LIVE_CLEANER_H

#include <stdbool.h>

/* What came of it. */
enum lw_cleaner_found {
	LW_CLEANER_NONE,     /* nobody reports if we are killed */
	LW_CLEANER_THERE,
	LW_CLEANER_STARTED,
	LW_CLEANER_LAUNCHER, /* not asked for: the launcher that stays does its work */
	LW_NR_CLEANERS,
};

/* After the region is complete and running: at bring-up, and in a forked child. errno is not kept. */
enum lw_cleaner_found lw_cleaner_register(void);

/*
 * At the end: does one have the region still that can write more than we can, wherever this process has moved to
 * since? Not a poor one (door.h). One that this process has started may be coming still: a second is waited.
 */
bool lw_cleaner_is_there(void);
/* Is the root another than when it was looked for? */
bool lw_cleaner_is_elsewhere(void);

#endif
