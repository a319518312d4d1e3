/* SPDX-License-Identifier: MIT */
/* cleaner.c - the target's side of the cleaner; see cleaner.h. */
#include "preload/live/cleaner.h"

#include "preload/live/spawn.h"
#include "preload/share/box.h"
#include "preload/share/door.h"

static bool start_cleaner(void)
{
	static char path[LW_SPAWN_PATH_BYTES]; /* not on a small stack */
	const char *argv[] = {path, NULL};

	if (lw_box->pid == 1) /* it would be our child, and end with us */
		return false;
	return lw_spawn_find("leakwatch-cleaner", path, sizeof(path)) &&
	       lw_spawn(argv, -1, -1, false) > 0;
}

void lw_cleaner_register(void)
{
	if (!lw_box || lw_box->shmid < 0)
		return; /* private memory leaves nothing behind */
	if (!lw_door_knock(lw_box->uid, lw_door_place()) && !start_cleaner())
		lw_box_remove();
}
