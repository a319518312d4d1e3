/* SPDX-License-Identifier: MIT */
/*
 * stay.h - the launcher as the program's parent, for containers whose process 1 it is.
 *
 * When process 1 of a container dies the kernel takes all others and the IPC namespace with it: no
 * cleaner could write a report any more. A launcher that stays can: it forwards signals, reaps
 * whatever becomes its child, writes the report when the program is killed, and ends as it did.
 */
#ifndef LW_LAUNCH_STAY_H
#define LW_LAUNCH_STAY_H

/* Returns in a child, which is to become the program; the parent never returns. */
void lw_stay(void);

#endif
