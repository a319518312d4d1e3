/* SPDX-License-Identifier: MIT */
/* door.c - looking at the cleaner's semaphores; see door.h. Runs inside the target: raw system
 * calls. */
#include "preload/share/door.h"

#include <errno.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include "preload/base/sys.h"

_Static_assert(LW_DOOR_MARK_VALUE < 32767, "a semaphore's value");

/* The text of the link, "pid:[4026531836]": to stat the namespace itself takes twice as long. */
static uint64_t pid_namespace(void)
{
	char text[64];
	long bytes = lw_syscall(SYS_readlink, "/proc/self/ns/pid", text, sizeof(text));
	uint64_t sum = 0;

	for (long i = 0; i < bytes; i++) {
		if (text[i] >= '0' && text[i] <= '9')
			sum = sum * 10 + (uint64_t)(text[i] - '0');
	}
	return sum;
}

/*
 * Each mount namespace has copies, with numbers of their own, of all mounts; a chroot into a plain folder
 * is on the same mount, but another folder. All in one number.
 */
static uint64_t root_mount(void)
{
	struct statx root;

	if (lw_syscall(SYS_statx, AT_FDCWD, "/", 0, STATX_MNT_ID | STATX_INO, &root) < 0 ||
		!(root.stx_mask & STATX_MNT_ID))
		return 0;
	return root.stx_mnt_id ^ root.stx_ino << 24 ^ (uint64_t)root.stx_dev_minor << 16;
}

uint64_t lw_door_place(void)
{
	static uint64_t pid_ns; /* kept over fork: a chroot without /proc may come later */
	static int32_t asked_pid;
	uint64_t now = 0;

	/* a parent that has a number here is of our own namespace: the first in a new one has none */
	if (!pid_ns || (int32_t)lw_syscall(SYS_getppid, 0) != asked_pid)
		now = pid_namespace();
	asked_pid = lw_sys_getpid();
	if (now)
		pid_ns = now;
	return pid_ns << 32 ^ root_mount();
}

uint64_t lw_door_poor_place(uint64_t place)
{
	return place ^ UINT64_C(0x706f6f7200000000);
}

int32_t lw_door_key(uint32_t uid, uint64_t place, unsigned attempt)
{
	/* a cleaner of another layout could not read our regions: it has its own door */
	const uint64_t layout = (uint64_t)LW_REGION_VERSION << 32 | sizeof(struct lw_region_header);
	uint64_t mixed = (place ^ layout * UINT64_C(0xff51afd7ed558ccd)) * UINT64_C(0x9e3779b97f4a7c15) ^
			 uid * UINT64_C(0xc2b2ae3d27d4eb4f);

	mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) +
		attempt * UINT64_C(0x94d049bb133111eb);
	mixed ^= mixed >> 32;
	/* bit 30 keeps it away from 0 (IPC_PRIVATE) and from any pid */
	return (int32_t)((mixed & 0x7fffffffu) | 0x40000000u);
}

enum lw_door lw_door_look(int semid, uint32_t uid)
{
	unsigned short values[LW_DOOR_NR];
	struct semid_ds stat;
	long err = lw_syscall(SYS_semctl, semid, 0, IPC_STAT, &stat);

	if (err < 0)
		return err == -EACCES ? LW_DOOR_IS_FOREIGN : LW_DOOR_IS_GONE;
	if (stat.sem_perm.uid != uid || stat.sem_perm.cuid != uid || stat.sem_nsems != LW_DOOR_NR ||
		(stat.sem_perm.mode & 0777) != 0600)
		return LW_DOOR_IS_FOREIGN;
	err = lw_syscall(SYS_semctl, semid, 0, GETALL, values);
	if (err < 0)
		return err == -EACCES ? LW_DOOR_IS_FOREIGN : LW_DOOR_IS_GONE;
	if (!values[LW_DOOR_LOCK] && !values[LW_DOOR_OPEN] && !values[LW_DOOR_MARK])
		return LW_DOOR_IS_NEW;
	if (values[LW_DOOR_MARK] != LW_DOOR_MARK_VALUE || values[LW_DOOR_LOCK] > 1 ||
		values[LW_DOOR_OPEN] > values[LW_DOOR_LOCK])
		return LW_DOOR_IS_FOREIGN;
	if (values[LW_DOOR_OPEN])
		return LW_DOOR_IS_OPEN;
	return values[LW_DOOR_LOCK] ? LW_DOOR_IS_CLOSED : LW_DOOR_IS_FREE;
}

/* The set of an open door, -1 none. */
static int find_open(uint32_t uid, uint64_t place)
{
	for (unsigned attempt = 0; attempt < LW_DOOR_KEYS; attempt++) {
		long semid = lw_syscall(SYS_semget, lw_door_key(uid, place, attempt), 0, 0);

		if (semid >= 0 && lw_door_look((int)semid, uid) == LW_DOOR_IS_OPEN)
			return (int)semid;
	}
	return -1;
}

bool lw_door_is_open(uint32_t uid, uint64_t place)
{
	return find_open(uid, place) >= 0;
}

bool lw_door_is_taken(uint32_t uid, uint64_t place)
{
	for (unsigned attempt = 0; attempt < LW_DOOR_KEYS; attempt++) {
		long semid = lw_syscall(SYS_semget, lw_door_key(uid, place, attempt), 0, 0);
		enum lw_door door = semid < 0 ? LW_DOOR_IS_GONE : lw_door_look((int)semid, uid);

		if (door == LW_DOOR_IS_OPEN || door == LW_DOOR_IS_CLOSED)
			return true;
	}
	return false;
}

bool lw_door_knock(uint32_t uid, uint64_t place)
{
	int semid = find_open(uid, place);
	long cleaner;

	if (semid < 0)
		return false;
	cleaner = lw_syscall(SYS_semctl, semid, LW_DOOR_OPEN, GETPID, 0);
	/* if it was killed since, its last act on the semaphore was to lower it */
	if (cleaner > 1 && lw_syscall(SYS_semctl, semid, LW_DOOR_OPEN, GETVAL, 0) == 1)
		(void)lw_syscall(SYS_kill, cleaner, SIGURG);
	return true;
}
