/* SPDX-License-Identifier: MIT */
/*
 * queue.h - the SysV message queue of a process: made at its start, used only while it is watched.
 *
 * The key comes from the pid, as the region's does, with another constant; the id is kept in the
 * region's header, and that is where a viewer finds it. A queue has no header of its own, so ours
 * are marked by a size no default has (msg_qbytes). It costs two system calls, and its place in the
 * kernel's table (kernel.msgmni). Without one the region alone is there to be read.
 *
 * One queue serves all viewers of a process: message type i + 1 is for place i of the header's
 * viewers. A queue for each viewer, made by it, would be simpler to share out, but would stay
 * behind when a viewer is killed and its target is gone, with nobody to remove it.
 */
#ifndef LW_SHARE_QUEUE_H
#define LW_SHARE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/share/wire.h"

/* What a message is in the kernel's eyes. The text is whole records, the first of them a TICK. */
struct lw_message {
	long type;
	_Alignas(8) unsigned char text[LW_WIRE_MAX];
};

int32_t lw_queue_key(int32_t pid, unsigned attempt);

/* A new queue for this process, pid is its own; or -errno. errno is kept. */
int32_t lw_queue_create(int32_t pid);

/* Is it a queue of ours, made by the user `uid`? */
bool lw_queue_is_ours(int32_t msqid, uint32_t uid);

/* Takes it out of the system, if it is one of ours. Does nothing for -1. */
void lw_queue_remove(int32_t msqid);

#endif
