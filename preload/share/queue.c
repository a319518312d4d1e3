/* SPDX-License-Identifier: MIT */
/* queue.c - making and removing the queue; see queue.h. Raw system calls: also inside hooks. */
#include "preload/share/queue.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>

#include "preload/base/sys.h"
#include "preload/share/region.h"

enum {
	KEYS = LW_REGION_KEYS,
	TRIES = 2,	   /* of one key: the second after a stale queue was removed */
	QUEUE_BYTES = 16381, /* just under the default, 16384: nobody else has exactly this */
};

int32_t lw_queue_key(int32_t pid, unsigned attempt)
{
	uint32_t mixed = (uint32_t)pid * 0x85ebca6bu ^ (attempt + 1) * 0xc2b2ae35u;

	mixed ^= mixed >> 16;
	mixed *= 0x7feb352du;
	mixed ^= mixed >> 15;
	/* bit 30 keeps it away from 0 (IPC_PRIVATE) and from any pid */
	return (int32_t)((mixed & 0x7fffffffu) | 0x40000000u);
}

bool lw_queue_is_ours(int32_t msqid, uint32_t uid)
{
	struct msqid_ds stat;

	return msqid >= 0 && lw_syscall(SYS_msgctl, msqid, IPC_STAT, &stat) >= 0 &&
	       stat.msg_perm.cuid == uid && /* who may use it changes where the process gave up rights */
	       (stat.msg_perm.mode & 0777) == 0600 && stat.msg_qbytes <= QUEUE_BYTES &&
	       stat.msg_qbytes % 2 == 1;
}

static void mark(int32_t msqid)
{
	struct msqid_ds stat;

	if (lw_syscall(SYS_msgctl, msqid, IPC_STAT, &stat) < 0)
		return;
	stat.msg_qbytes = stat.msg_qbytes > QUEUE_BYTES ? QUEUE_BYTES : (stat.msg_qbytes - 1) | 1;
	(void)lw_syscall(SYS_msgctl, msqid, IPC_SET, &stat);
}

/*
 * Does a region that some process has attached name this queue? Under our own pid's keys only: a
 * live one there is that of a process of another pid namespace with the same number.
 */
static bool is_in_use(int32_t pid, int32_t msqid)
{
	const struct lw_region_header *region;
	bool is_named = false;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS && !is_named; attempt++) {
		int shmid = (int)lw_syscall(SYS_shmget, lw_region_key(pid, attempt), 0, 0);
		struct shmid_ds stat;
		long at;

		if (shmid < 0 || lw_syscall(SYS_shmctl, shmid, IPC_STAT, &stat) < 0 ||
			!stat.shm_nattch || stat.shm_segsz < sizeof(*region))
			continue;
		at = lw_syscall(SYS_shmat, shmid, 0, SHM_RDONLY);
		if (lw_sys_failed(at))
			continue;
		region = (const struct lw_region_header *)at;
		is_named = region->magic == LW_REGION_MAGIC && region->msqid == msqid;
		(void)lw_syscall(SYS_shmdt, at);
	}
	return is_named;
}

int32_t lw_queue_create(int32_t pid)
{
	uint32_t uid = (uint32_t)lw_syscall(SYS_geteuid, 0);
	long msqid = -EEXIST;

	for (unsigned attempt = 0; attempt < KEYS; attempt++) {
		int32_t key = lw_queue_key(pid, attempt);

		for (unsigned tries = 0; tries < TRIES; tries++) {
			msqid = lw_syscall(SYS_msgget, key, IPC_CREAT | IPC_EXCL | 0600);
			if (msqid >= 0) {
				mark((int32_t)msqid);
				return (int32_t)msqid;
			}
			if (msqid != -EEXIST)
				return (int32_t)msqid;
			msqid = lw_syscall(SYS_msgget, key, 0);
			if (msqid < 0 || !lw_queue_is_ours((int32_t)msqid, uid) ||
				is_in_use(pid, (int32_t)msqid))
				break; /* somebody else's: next key */
			lw_queue_remove((int32_t)msqid);
		}
	}
	return -EEXIST;
}

void lw_queue_remove(int32_t msqid)
{
	if (lw_queue_is_ours(msqid, (uint32_t)lw_syscall(SYS_geteuid, 0)))
		(void)lw_syscall(SYS_msgctl, msqid, IPC_RMID, 0);
}
