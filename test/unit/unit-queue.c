/* SPDX-License-Identifier: MIT */
/*
 * unit-queue.c - a process gets a queue of its own under a key of its pid; what a dead process left under
 * that key is replaced, what belongs to somebody else, or is in use, is not.
 */
#include "test/unit/tap.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <unistd.h>

#include "preload/share/queue.h"
#include "preload/share/region.h"

static void test_keys(void)
{
	int nr_same = 0;

	for (int32_t pid = 1; pid < 3000; pid++)
		for (unsigned a = 0; a < LW_REGION_KEYS; a++) {
			int32_t key = lw_queue_key(pid, a);

			nr_same += key < 4194304;
			for (unsigned b = 0; b < LW_REGION_KEYS; b++)
				nr_same += key == lw_region_key(pid, b) || (b < a && key == lw_queue_key(pid, b));
		}
	is_u64(nr_same, 0, "keys are no pids, not private, differ by attempt and from the region's");
}

static bool exists(int32_t msqid)
{
	struct msqid_ds stat;

	return msgctl(msqid, IPC_STAT, &stat) == 0;
}

static void test_own(void)
{
	int32_t first = lw_queue_create(getpid()), second;
	struct msqid_ds stat;

	ok(first >= 0, "made");
	ok(msgctl(first, IPC_STAT, &stat) == 0 && (stat.msg_perm.mode & 0777) == 0600, "mode 0600");
	is_u64(stat.msg_perm.__key, lw_queue_key(getpid(), 0), "under the first key");
	ok(lw_queue_is_ours(first, geteuid()), "known again as ours");
	ok(!lw_queue_is_ours(first, geteuid() + 1), "and as nobody else's");
	second = lw_queue_create(getpid());
	ok(second >= 0 && second != first && !exists(first), "one left by the image before exec is replaced");
	lw_queue_remove(second);
	ok(!exists(second), "removed");
	lw_queue_remove(second);
	lw_queue_remove(-1);
	errno = 0;
	ok(lw_queue_create(getpid()) >= 0 && errno == 0, "errno is kept");
	lw_queue_remove(msgget(lw_queue_key(getpid(), 0), 0));
}

static void test_strangers(void)
{
	int stranger = msgget(lw_queue_key(getpid(), 0), IPC_CREAT | IPC_EXCL | 0600);
	int32_t mine = lw_queue_create(getpid());
	struct msqid_ds stat;

	ok(stranger >= 0 && exists(stranger), "a queue without our mark is left alone");
	ok(!lw_queue_is_ours(stranger, geteuid()), "and not taken for ours");
	ok(msgctl(mine, IPC_STAT, &stat) == 0 && stat.msg_perm.__key == lw_queue_key(getpid(), 1),
		"the next key is taken");
	lw_queue_remove(stranger);
	ok(exists(stranger), "it cannot be removed by us either");
	(void)msgctl(stranger, IPC_RMID, NULL);
	lw_queue_remove(mine);
}

/* A process of another pid namespace has our number: its region is attached, and names the queue. */
static void test_in_use(void)
{
	int32_t its = lw_queue_create(getpid()), mine;
	int shmid = shmget(lw_region_key(getpid(), 0), sizeof(struct lw_region_header),
		IPC_CREAT | IPC_EXCL | 0600);
	struct lw_region_header *region = shmat(shmid, NULL, 0);

	region->magic = LW_REGION_MAGIC;
	region->msqid = its;
	mine = lw_queue_create(getpid());
	ok(exists(its) && mine >= 0 && mine != its, "a queue that an attached region names is in use");
	lw_queue_remove(mine);
	(void)shmdt(region);
	mine = lw_queue_create(getpid());
	ok(!exists(its) && mine >= 0, "when nobody has that region any more it is stale");
	lw_queue_remove(mine);
	(void)shmctl(shmid, IPC_RMID, NULL);
}

int main(void)
{
	int probe = msgget(IPC_PRIVATE, 0600);

	if (probe < 0)
		return tap_skip_all("no message queues here");
	(void)msgctl(probe, IPC_RMID, NULL);
	test_keys();
	test_own();
	test_strangers();
	test_in_use();
	return done();
}
