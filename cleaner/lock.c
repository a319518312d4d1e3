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
	MAX_WAITS = 150,   /* a cleaner decides in microseconds: after 3 s it is stopped, or none of ours */
	MAX_RETRIES = 100, /* sets that vanish between finding and taking them */
};

static int held = -1; /* the set's id */


/* Both at once: there is no moment at which the door is locked by a cleaner that never opened it. */
static int take(int semid)
{
	struct sembuf ops[] = {
		{ LW_DOOR_LOCK, 0, 0 },
		{ LW_DOOR_OPEN, 0, 0 },
		{ LW_DOOR_LOCK, 1, SEM_UNDO },
		{ LW_DOOR_OPEN, LW_DOOR_MARK, SEM_UNDO },
	};
	const struct timespec wait = { .tv_nsec = WAIT_MS * 1000000L };

	return semtimedop(semid, ops, LW_ARRAY_LENGTH(ops), &wait) < 0 ? -errno : 0;
}

static int find_or_make(int32_t key)
{
	int semid = semget(key, LW_DOOR_NR, IPC_CREAT | IPC_EXCL | 0600);

	if (semid < 0 && errno == EEXIST)
		semid = semget(key, 0, 0);
	return semid;
}

/* One key of the sequence: true when *result is known, false: the next key. */
static bool try_key(uint32_t uid, uint64_t place, unsigned attempt, enum lock *result)
{
	int nr_waits = 0;

	for (int i = 0; i < MAX_RETRIES + MAX_WAITS && nr_waits < MAX_WAITS; i++) {
		int semid = find_or_make(lw_door_key(uid, place, attempt)), err;

		if (semid < 0 && errno != ENOENT)
			return false;
		if (semid < 0)
			continue;
		if (lw_door_look(semid, uid) == LW_DOOR_IS_FOREIGN)
			return false;
		err = take(semid);
		if (!err) {
			held = semid;
			*result = LOCK_TAKEN;
			return true;
		}
		if (lw_door_is_open(uid, place)) {
			*result = LOCK_IS_SERVED;
			return true;
		}
		if (err == -EAGAIN)
			nr_waits++;
		else if (err != -EIDRM && err != -EINVAL && err != -EINTR)
			return false;
	}
	return false;
}

enum lock lock_take(void)
{
	uint64_t place = lw_door_place();
	uint32_t uid = geteuid();
	enum lock result = LOCK_FAILED;

	/* also under a later key, from a time when somebody else had the first */
	if (lw_door_is_open(uid, place))
		return LOCK_IS_SERVED;
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
	struct sembuf op = { LW_DOOR_OPEN, by, SEM_UNDO | IPC_NOWAIT };

	(void)semop(held, &op, 1); /* a set that is gone is noticed by lock_is_held() */
}

void lock_close(void)
{
	change(-LW_DOOR_MARK);
}

void lock_open(void)
{
	change(LW_DOOR_MARK);
}

void lock_remove(void)
{
	(void)semctl(held, 0, IPC_RMID);
	held = -1;
}
