/* SPDX-License-Identifier: MIT */
/* lock.c - taking, opening, closing and removing the door; see lock.h. */
#include "cleaner/lock.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "preload/share/door.h"

enum {
	WAIT_MS = 20,	   /* between two looks at a closed door */
	MAX_WAITS = 150,   /* a cleaner decides in microseconds: after 3 s it is stopped, or no cleaner */
	MAX_RETRIES = 100, /* sets that vanish between finding and taking them */
};

static int held = -1; /* the set's id */
static bool is_poor;   /* the door is that of the poor place */

/*
 * All in one step: there is no moment at which the door is locked by a cleaner that never opened
 * it. The mark is put on a set that we made, and only looked at (lowered and raised) on another.
 */
static int take(int semid, bool is_made)
{
	struct sembuf ops[] = {
		{LW_DOOR_LOCK, 0, 0},
		{LW_DOOR_OPEN, 0, 0},
		{LW_DOOR_LOCK, 1, SEM_UNDO},
		{LW_DOOR_OPEN, 1, SEM_UNDO},
		{LW_DOOR_MARK, is_made ? 0 : -LW_DOOR_MARK_VALUE, 0},
		{LW_DOOR_MARK, LW_DOOR_MARK_VALUE, 0},
	};
	const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000L};

	return semtimedop(semid, ops, LW_ARRAY_LENGTH(ops), &wait) < 0 ? -errno : 0;
}

static int find_or_make(int32_t key, bool *is_made)
{
	int semid = semget(key, LW_DOOR_NR, IPC_CREAT | IPC_EXCL | 0600);

	*is_made = semid >= 0;
	if (semid < 0 && errno == EEXIST)
		semid = semget(key, 0, 0);
	return semid < 0 ? -errno : semid;
}

/* 0: the door is ours; -EAGAIN: in a while; -EIDRM: at once; else: the next key. */
static int try_once(int32_t key, uint32_t uid)
{
	bool is_made;
	int semid = find_or_make(key, &is_made), err;

	if (semid < 0)
		return semid == -ENOENT ? -EIDRM : semid;
	if (!is_made && lw_door_look(semid, uid) == LW_DOOR_IS_FOREIGN)
		return -EEXIST;
	err = take(semid, is_made);
	if (!err)
		held = semid;
	return err == -EINVAL ? -EIDRM : err;
}

/* One key of the sequence: true when *result is known, false: the next key. */
static bool try_key(uint32_t uid, uint64_t place, unsigned attempt, enum lock *result)
{
	int nr_waits = 0, nr_retries = 0, err;

	do {
		err = try_once(lw_door_key(uid, place, attempt), uid);
		if (!err)
			*result = LOCK_TAKEN;
		else if (lw_door_is_open(uid, place))
			*result = LOCK_IS_SERVED;
		if (*result != LOCK_FAILED)
			return true;
		nr_waits += err == -EAGAIN;
		nr_retries += err == -EIDRM || err == -EINTR;
	} while ((err == -EAGAIN || err == -EIDRM || err == -EINTR) && nr_waits < MAX_WAITS &&
		 nr_retries < MAX_RETRIES);
	return false;
}

void lock_be_poor(void)
{
	is_poor = true;
}

bool lock_is_poor(void)
{
	return is_poor;
}

bool lock_has_richer(void)
{
	return is_poor && lw_door_is_taken(geteuid(), lw_door_place());
}

enum lock lock_take(void)
{
	uint64_t place = lw_door_place();
	uint32_t uid = geteuid();
	enum lock result = LOCK_FAILED;

	/* also under a later key, from a time when somebody else had the first */
	if (lw_door_is_open(uid, place))
		return LOCK_IS_SERVED;
	if (is_poor) {
		place = lw_door_poor_place(place);
		if (lw_door_is_open(uid, place))
			return LOCK_IS_SERVED;
	}
	for (unsigned attempt = 0; attempt < LW_DOOR_KEYS; attempt++) {
		if (try_key(uid, place, attempt, &result))
			return result;
	}
	return LOCK_FAILED;
}

bool lock_is_held(void)
{
	return held >= 0 && semctl(held, LW_DOOR_LOCK, GETVAL) == 1;
}

static void change(short by)
{
	struct sembuf op = {LW_DOOR_OPEN, by, SEM_UNDO | IPC_NOWAIT};

	(void)semop(held, &op, 1); /* a set that is gone is noticed by lock_is_held() */
}

void lock_close(void)
{
	change(-1);
}

void lock_open(void)
{
	change(1);
}

/* Taken closed, so that nobody counts on us, and only if it is free. */
static void remove_if_free(int semid)
{
	struct sembuf ops[] = {
		{LW_DOOR_LOCK, 0, IPC_NOWAIT},
		{LW_DOOR_OPEN, 0, IPC_NOWAIT},
		{LW_DOOR_LOCK, 1, SEM_UNDO | IPC_NOWAIT},
	};

	if (lw_door_look(semid, geteuid()) == LW_DOOR_IS_FREE &&
		semop(semid, ops, LW_ARRAY_LENGTH(ops)) == 0)
		(void)semctl(semid, 0, IPC_RMID);
}

void lock_sweep(void)
{
	struct seminfo info;
	union {
		struct seminfo *info;
		struct semid_ds *stat;
	} argument = {&info};
	int last = semctl(0, 0, SEM_INFO, argument);

	for (int slot = 0; slot <= last; slot++) {
		struct semid_ds stat;
		int semid;

		argument.stat = &stat;
		semid = semctl(slot, 0, SEM_STAT, argument);
		if (semid >= 0)
			remove_if_free(semid);
	}
}

void lock_remove(void)
{
	(void)semctl(held, 0, IPC_RMID);
	held = -1;
}
