/* SPDX-License-Identifier: MIT */
/* cleaner.c - the target's side of the cleaner; see cleaner.h. */
#include "preload/live/cleaner.h"

#include <string.h>

#include "preload/base/sys.h"
#include "preload/live/spawn.h"
#include "preload/share/box.h"
#include "preload/share/door.h"

enum { COMING_MS = 1000, LOOK_MS = 5 };

static uint64_t place; /* where it was looked for; 0 nowhere */
static bool is_coming; /* we started one, and have not seen its door open yet */

static bool start_cleaner(void)
{
	static char path[LW_SPAWN_PATH_BYTES] LW_ROOM; /* not on a small stack */
	const char *argv[] = {path, NULL};

	/* it would be our child, and end with us; or that of a program which does not know of it */
	if (lw_own.pid == 1 || lw_load(&lw_box->flags) & LW_REGION_UNDER_REAPER)
		return false;
	return lw_spawn_find("leakwatch-cleaner", path, sizeof(path)) &&
	       lw_spawn(argv, -1, -1, false, (struct lw_spawn_needs){ 0, 0 }) > 0;
}

/*
 * The first process of a container: when it ends all others do, and with the last of them an IPC
 * namespace of their own and what is in it. The kernel has a fixed number for the one it started with.
 */
static bool is_swept_away(void)
{
	static const char first[] = "ipc:[4026531839]";
	char own[64];
	long bytes;

	if (lw_own.pid != 1)
		return false;
	bytes = lw_syscall(SYS_readlink, "/proc/self/ns/ipc", own, sizeof(own));
	return bytes > 0 && (bytes != sizeof(first) - 1 || memcmp(own, first, sizeof(first) - 1));
}

static bool is_poor(void)
{
	return lw_load(&lw_box->flags) & LW_REGION_POOR;
}

enum lw_cleaner_found lw_cleaner_register(void)
{
	is_coming = false;
	if (!lw_box || lw_own.shmid < 0)
		return LW_CLEANER_NONE; /* private memory leaves nothing behind */
	place = lw_door_place();
	if (lw_door_knock(lw_own.uid, place))
		return LW_CLEANER_THERE;
	if (is_poor() && lw_door_knock(lw_own.uid, lw_door_poor_place(place)))
		return LW_CLEANER_THERE;
	is_coming = start_cleaner();
	if (is_coming)
		return LW_CLEANER_STARTED;
	if (!is_swept_away())
		lw_box_remove();
	return LW_CLEANER_NONE;
}

bool lw_cleaner_is_there(void)
{
	if (!place || lw_own.shmid < 0)
		return false;
	for (uint32_t waited_ms = 0; !lw_door_is_open(lw_own.uid, place); waited_ms += LOOK_MS) {
		if (!is_coming || waited_ms >= COMING_MS ||
				(is_poor() && lw_door_is_open(lw_own.uid, lw_door_poor_place(place))))
			return is_coming = false;
		lw_sys_sleep_ms(LOOK_MS);
	}
	return true;
}

bool lw_cleaner_is_elsewhere(void)
{
	return place && lw_door_place() != place;
}
