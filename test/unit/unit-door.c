/* SPDX-License-Identifier: MIT */
/*
 * unit-door.c - keys of doors, and what a look at a set of semaphores says of it.
 *
 * The place is made up, so that no cleaner's door is ever found here.
 */
#include "preload/share/door.h"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/tap.h"

static const uint64_t place = UINT64_C(0x7465737400000000);
static volatile sig_atomic_t nr_knocks;

static void count_knock(int signal)
{
	(void)signal;
	nr_knocks++;
}

static void test_keys(void)
{
	bool is_distinct = true, is_far = true;

	for (unsigned i = 0; i < LW_DOOR_KEYS; i++) {
		int32_t key = lw_door_key(1000, place, i);

		is_far = is_far && key > 1 << 22;
		for (unsigned other = 0; other < i; other++)
			is_distinct = is_distinct && key != lw_door_key(1000, place, other);
	}
	ok(is_distinct, "the keys of one door differ");
	ok(is_far, "none is IPC_PRIVATE, or could be a pid");
	ok(lw_door_key(1000, place, 0) != lw_door_key(1001, place, 0), "another user, another key");
	ok(lw_door_key(1000, place, 0) != lw_door_key(1000, place + 1, 0), "another place, another key");
	ok(lw_door_key(1000, place, 0) != lw_door_key(1000, lw_door_poor_place(place), 0), "the poor have another door");
	ok(lw_door_place() && lw_door_place() == lw_door_place(), "a process has one place");
	ok(lw_door_key(1000, place, 0) != lw_region_key((int32_t)place, 0), "no region's key");
}

static int make_set(int nr, int mode, unsigned short lock, unsigned short open, unsigned short mark)
{
	int semid = semget(lw_door_key(geteuid(), place, 2), nr, IPC_CREAT | IPC_EXCL | mode);

	if (semid >= 0 && nr >= LW_DOOR_NR) {
		(void)semctl(semid, LW_DOOR_LOCK, SETVAL, lock);
		(void)semctl(semid, LW_DOOR_OPEN, SETVAL, open);
		(void)semctl(semid, LW_DOOR_MARK, SETVAL, mark);
	}
	return semid;
}

static void test_look(void)
{
	enum { MARK = LW_DOOR_MARK_VALUE };
	static const struct {
		const char *name;
		int nr, mode;
		unsigned short lock, open, mark;
		enum lw_door want;
	} rows[] = {
		{ "open", 3, 0600, 1, 1, MARK, LW_DOOR_IS_OPEN },
		{ "closed", 3, 0600, 1, 0, MARK, LW_DOOR_IS_CLOSED },
		{ "free", 3, 0600, 0, 0, MARK, LW_DOOR_IS_FREE },
		{ "just made", 3, 0600, 0, 0, 0, LW_DOOR_IS_NEW },
		{ "open, but locked by nobody", 3, 0600, 0, 1, MARK, LW_DOOR_IS_FOREIGN },
		{ "locked twice", 3, 0600, 2, 0, MARK, LW_DOOR_IS_FOREIGN },
		{ "of another version", 3, 0600, 1, 1, MARK + 1, LW_DOOR_IS_FOREIGN },
		{ "without a mark", 3, 0600, 1, 1, 0, LW_DOOR_IS_FOREIGN },
		{ "for others to change", 3, 0666, 1, 1, MARK, LW_DOOR_IS_FOREIGN },
		{ "of another size", 4, 0600, 1, 1, MARK, LW_DOOR_IS_FOREIGN },
		{ "too small", 1, 0600, 1, 1, MARK, LW_DOOR_IS_FOREIGN },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int semid = make_set(rows[i].nr, rows[i].mode, rows[i].lock, rows[i].open, rows[i].mark);

		is_u64(lw_door_look(semid, geteuid()), rows[i].want, "a set that is %s", rows[i].name);
		is_u64(lw_door_is_open(geteuid(), place), rows[i].want == LW_DOOR_IS_OPEN,
			"found as open or not: %s", rows[i].name);
		is_u64(lw_door_is_taken(geteuid(), place),
			rows[i].want == LW_DOOR_IS_OPEN || rows[i].want == LW_DOOR_IS_CLOSED,
			"taken or not: %s", rows[i].name);
		ok(!lw_door_is_taken(geteuid(), lw_door_poor_place(place)) &&
				!lw_door_is_open(geteuid(), lw_door_poor_place(place)),
			"and it is not the door of the poor");
		is_u64(lw_door_look(semid, geteuid() + 1), LW_DOOR_IS_FOREIGN, "another user's");
		(void)semctl(semid, 0, IPC_RMID);
		is_u64(lw_door_look(semid, geteuid()), LW_DOOR_IS_GONE, "removed");
	}
}

/* Opens the door as a cleaner does, says so, and waits to be killed. */
static void be_cleaner(int semid, int fd)
{
	struct sembuf ops[] = { { LW_DOOR_LOCK, 1, SEM_UNDO }, { LW_DOOR_OPEN, 1, SEM_UNDO } };
	struct sigaction action = { .sa_handler = count_knock };
	char byte = (char)(semop(semid, ops, 2) == 0);

	(void)sigaction(SIGURG, &action, NULL);
	(void)!write(fd, &byte, 1);
	while (!nr_knocks)
		(void)usleep(1000);
	(void)!write(fd, "k", 1);
	for (;;)
		(void)pause();
}

static void test_knock(void)
{
	int semid = make_set(3, 0600, 0, 0, LW_DOOR_MARK_VALUE), fds[2];
	char byte = 0;
	pid_t pid;

	ok(!lw_door_knock(geteuid(), place), "nobody hears a knock at a free door");
	if (!ok(pipe(fds) == 0, "a pipe"))
		return;
	pid = fork();
	if (pid == 0)
		be_cleaner(semid, fds[1]);
	ok(read(fds[0], &byte, 1) == 1 && byte == 1, "the door is taken");
	ok(lw_door_knock(geteuid(), place), "somebody is there");
	ok(read(fds[0], &byte, 1) == 1 && byte == 'k', "and has heard it");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	is_u64(lw_door_look(semid, geteuid()), LW_DOOR_IS_FREE, "the kernel frees the door of the dead");
	ok(!lw_door_knock(geteuid(), place), "and nobody is there");
	(void)semctl(semid, 0, IPC_RMID);
}

int main(void)
{
	int semid = semget(IPC_PRIVATE, 1, 0600);

	if (semid < 0)
		return tap_skip_all("no semaphores here");
	(void)semctl(semid, 0, IPC_RMID);
	test_keys();
	test_look();
	test_knock();
	return done();
}
