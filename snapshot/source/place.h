/* SPDX-License-Identifier: MIT */
/*
 * place.h - where a process lives: its number in its own pid namespace, and its IPC namespace.
 *
 * A process in a container has another number there, and its shared memory and queue are in a table
 * of their own. This program enters that table, for good, and if need be the user namespace it
 * belongs to. Files of the process are read through /proc/PID/root, so its mount namespace is not
 * entered.
 */
#ifndef LW_SNAPSHOT_PLACE_H
#define LW_SNAPSHOT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct source_error {
	char text[512];
	bool is_cut; /* what was read ended in the middle of a record: not an error */
};

struct place {
	pid_t pid;	      /* as this program sees it */
	pid_t inner_pid;      /* as the process itself does */
	bool has_common_pids; /* our number means us, there */
};

/* Must be called before this program starts any thread. A process that is gone is in our own place. */
bool place_enter(pid_t pid, struct place *place, struct source_error *error);

/*
 * May its next child be the helper? NULL, or a sentence why not: it has made rules about system
 * calls, which a clone could break, or its children go to another pid namespace.
 */
const char *place_forbids_helper(pid_t pid);

/* The user it is now, which may be another than the one who started it. */
uint32_t place_euid(pid_t pid, uint32_t if_unknown);

#endif
