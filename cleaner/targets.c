/* SPDX-License-Identifier: MIT */
/*
 * targets.c - walking the kernel's segments; see targets.h.
 *
 * Life and death are told by three things the kernel knows: who made a segment (shm_cpid, in our
 * own pid namespace, 0 when it is not in it), whether that process lives (watch.c), and how many
 * have the segment attached (shm_nattch). A header's own pid is only compared with the first.
 *
 * Nobody attached means that the process has no address space with the region any more: it is
 * ending, or it has called exec. A dead process's region may still be attached by a forked child
 * that has not allocated yet, by a reporter, or by a viewer.
 */
#include "cleaner/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleaner/lock.h"
#include "cleaner/reporter.h"
#include "cleaner/watch.h"
#include "preload/share/queue.h"
#include "preload/base/base.h"

#define MS UINT64_C(1000000)

/* How long something may look final and yet be about to change. */
static const uint64_t exec_grace_ns = 2000 * MS; /* a watched image replaces the region itself */
static const uint64_t elsewhere_grace_ns = 3000 * MS; /* the cleaner of that place comes first */
static const uint64_t launcher_grace_ns = 5000 * MS; /* one that stays (option stay) reports at once */
static const uint64_t starting_grace_ns = 1000 * MS;
static const uint64_t scan_grace_ns = 20000 * MS;   /* for one that looks for lost memory */
static const uint64_t helper_grace_ns = 2000 * MS;  /* for a helper that has survived its process */
static const uint64_t ending_least_ns = 300 * MS; /* a reporter started, but not attached yet */
static const uint64_t ending_most_ns = 30000 * MS; /* while it, or somebody else, is attached */

enum what {
	NOTHING,   /* an empty slot */
	NOT_OURS,  /* no region, another user's, or one that goes by itself */
	STARTING,  /* its process fills in the header */
	ELSEWHERE, /* another place's cleaner has it, while anybody is attached */
	ALIVE,
	DEAD,	   /* to be reported, if it is not, then removed */
};

struct target {
	int shmid;
	uint8_t what; /* enum what */
	struct watch watch;
	int signal;	   /* that killed it, 0 unknown */
	bool is_left;	   /* its process was seen alive without it: gone by exec, whatever comes of it */
	bool is_due;	   /* DEAD, and nothing but room for one more reporter is missing */
	uint64_t since_ns; /* when it became DEAD or STARTING, or nobody was attached; 0 no */
};

static struct target *targets; /* index: slot in the kernel's table */
static size_t nr_targets;
static struct pollfd *poll_set;
static size_t max_poll;
static bool is_restless;

static void set_what(struct target *target, enum what what, uint64_t now_ns)
{
	if (what != ALIVE)
		watch_close(&target->watch);
	is_restless |= what != NOT_OURS;
	target->what = what;
	target->is_due = false;
	target->is_left = target->is_left && what == DEAD;
	target->since_ns = now_ns;
}

static void clear(struct target *target)
{
	if (target->what == NOTHING)
		return;
	watch_close(&target->watch);
	is_restless |= target->what != NOT_OURS;
	target->what = NOTHING;
	target->is_left = false;
}

/* ---- what a segment is ---- */

static int copy_header(int shmid, struct lw_region_header *copy)
{
	const struct lw_region_header *region;
	uint64_t bytes;
	const char *why;
	int err = lw_region_attach_id(shmid, &region, &bytes, &why);

	if (err)
		return err;
	memcpy(copy, region, sizeof(*copy));
	lw_region_detach(region);
	/* what was checked may have changed before it was copied */
	return lw_region_check(copy, bytes) ? -EPROTO : 0;
}

static bool is_candidate(const struct shmid_ds *stat)
{
	uid_t self = geteuid();

	return stat->shm_perm.uid == self && stat->shm_perm.cuid == self &&
	       (stat->shm_perm.mode & 0777) == 0600 && !(stat->shm_perm.mode & SHM_DEST) &&
	       stat->shm_segsz >= sizeof(struct lw_region_header);
}

/* A header that is not filled in names nobody: the key tells whose it would be. */
static bool has_key_of(const struct shmid_ds *stat, int32_t pid)
{
	for (unsigned attempt = 0; pid && attempt < LW_REGION_KEYS; attempt++) {
		if (stat->shm_perm.__key == lw_region_key(pid, attempt))
			return true;
	}
	return false;
}

static void adopt(struct target *target, const struct shmid_ds *stat, uint64_t now_ns)
{
	static struct lw_region_header copy; /* 20 KiB */
	int err = copy_header(target->shmid, &copy);

	if (err == -ENOMEM || (err == -EAGAIN && !has_key_of(stat, stat->shm_cpid)))
		return; /* again next time; it may be anybody's that is still all zero */
	if (err == -EAGAIN) {
		if (target->what != STARTING)
			set_what(target, STARTING, now_ns);
	} else if (err || (lock_is_poor() && !(copy.flags & LW_REGION_POOR))) {
		set_what(target, NOT_OURS, 0);
	} else if (stat->shm_cpid != copy.pid || watch_has_other_root(stat->shm_cpid)) {
		set_what(target, ELSEWHERE, 0);
	} else if (watch_open(&target->watch, stat->shm_cpid, copy.start_ticks)) {
		set_what(target, ALIVE, 0);
	} else {
		set_what(target, DEAD, now_ns);
	}
}

/* ---- what is to be done ---- */

/* The queue of the process, which its region names. */
static void remove_queue(int shmid)
{
	const struct lw_region_header *region;
	uint64_t bytes;
	const char *why;

	if (lw_region_attach_id(shmid, &region, &bytes, &why))
		return;
	lw_queue_remove(lw_load(&region->msqid));
	lw_region_detach(region);
}

static void remove_segment(struct target *target)
{
	remove_queue(target->shmid);
	(void)shmctl(target->shmid, IPC_RMID, NULL);
	clear(target);
}

/* Ours from now on, unless the target's own end, or another cleaner, was faster. */
static struct lw_region_header *claim(int shmid, uint32_t state)
{
	void *map = shmat(shmid, NULL, 0);
	struct lw_region_header *region = map;

	if (map == (void *)-1)
		return NULL;
	if (!__atomic_compare_exchange_n(&region->state, &state, LW_STATE_ENDING, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		(void)shmdt(map);
		return NULL;
	}
	lw_store(&region->cleaner_pid, (uint32_t)getpid());
	return region;
}

/* Died in its own report: the reporter it started may still be at work. */
static bool is_to_wait(const struct target *target, unsigned long nr_attached, uint64_t now_ns)
{
	uint64_t dead_ns = now_ns - target->since_ns;

	return dead_ns < ending_least_ns || (nr_attached && dead_ns < ending_most_ns);
}

static void bury(struct target *target, unsigned long nr_attached, uint64_t now_ns)
{
	static struct lw_region_header copy;
	struct lw_region_header *map;
	int err;

	/* to look at thousands that wait, at each scan, would take the time of the reporters they wait for */
	if (reporter_has(target->shmid) || (target->is_due && !reporter_has_room()) || lock_has_richer())
		return;
	err = copy_header(target->shmid, &copy);
	if (err == -ENOMEM)
		return; /* for now */
	/* before it is asked what is wanted: a launcher writes where no cleaner could, and may be about to */
	if (!err && copy.state < LW_STATE_REPORTED && reporter_is_launcher(&copy) &&
		now_ns - target->since_ns < launcher_grace_ns)
		return;
	if (err || target->is_left || copy.state >= LW_STATE_REPORTED || !reporter_is_wanted(&copy)) {
		remove_segment(target);
		return;
	}
	/* it still writes down what only its process's memory knows */
	if (lw_load(&copy.helper_pid) && now_ns - target->since_ns <
					  (lw_load(&copy.scan.state) == LW_SCAN_RUNNING ? scan_grace_ns : helper_grace_ns))
		return;
	if (copy.state == LW_STATE_ENDING && is_to_wait(target, nr_attached, now_ns))
		return;
	target->is_due = !reporter_has_room();
	if (target->is_due)
		return;
	map = claim(target->shmid, copy.state);
	if (!map)
		return;
	reporter_start(target->shmid, &copy, target->signal, map);
}

static void see_death(struct target *target, uint64_t now_ns)
{
	int status;

	target->signal =
		watch_status(&target->watch, &status) && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	set_what(target, DEAD, now_ns);
}

/* For how long has nobody been attached? */
static uint64_t alone_ns(struct target *target, const struct shmid_ds *stat, uint64_t now_ns)
{
	if (stat->shm_nattch)
		target->since_ns = 0;
	else if (!target->since_ns)
		target->since_ns = now_ns;
	return target->since_ns ? now_ns - target->since_ns : 0;
}

/*
 * By exec, which an image of ours follows up by making the region its own, if it is allowed to: not after
 * a change of user. It may die before the time is over, and its report would not be this one.
 */
static void look_for_exec(struct target *target, const struct shmid_ds *stat, uint64_t now_ns)
{
	uint64_t ns = alone_ns(target, stat, now_ns);

	if (stat->shm_nattch || (target->is_left && ns <= exec_grace_ns) || !watch_has_memory(&target->watch))
		return;
	target->is_left = true;
	if (ns > exec_grace_ns)
		remove_segment(target);
}

static void look_after(struct target *target, const struct shmid_ds *stat, uint64_t now_ns)
{
	switch (target->what) {
	case STARTING:
		if (stat->shm_nattch)
			target->since_ns = now_ns;
		else if (now_ns - target->since_ns > starting_grace_ns)
			remove_segment(target); /* killed while it came up */
		break;
	case ELSEWHERE:
		if (alone_ns(target, stat, now_ns) > elsewhere_grace_ns)
			set_what(target, DEAD, now_ns);
		break;
	case ALIVE:
		if (!watch_is_alive(&target->watch))
			see_death(target, now_ns);
		else
			look_for_exec(target, stat, now_ns);
		break;
	default:
		break;
	}
	if (target->what == DEAD)
		bury(target, stat->shm_nattch, now_ns);
}

/* ---- all of them ---- */

static bool make_room(size_t nr_slots)
{
	struct target *more;

	if (nr_slots <= nr_targets)
		return true;
	nr_slots = LW_ALIGN_UP(nr_slots, (size_t)64);
	more = realloc(targets, nr_slots * sizeof(*targets));
	if (!more)
		return false;
	for (size_t i = nr_targets; i < nr_slots; i++)
		more[i] = (struct target){.what = NOTHING, .watch = {.fd = -1}};
	targets = more;
	nr_targets = nr_slots;
	return true;
}

static void visit(struct target *target, int slot, uint64_t now_ns)
{
	struct shmid_ds stat;
	int shmid = shmctl(slot, SHM_STAT, &stat);

	if (shmid < 0 || (target->what != NOTHING && target->shmid != shmid))
		clear(target);
	if (shmid < 0)
		return;
	target->shmid = shmid;
	if (!is_candidate(&stat))
		set_what(target, NOT_OURS, 0);
	else if (target->what == NOTHING || target->what == STARTING)
		adopt(target, &stat, now_ns);
	look_after(target, &stat, now_ns);
}

static int last_slot(void)
{
	struct shm_info info;

	/* the kernel fills a struct of its own for this one */
	return shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
}

size_t targets_scan(uint64_t now_ns)
{
	int last = last_slot();

	is_restless = false;
	for (int slot = 0; slot <= last; slot++) {
		if (!make_room((size_t)slot + 1))
			break;
		visit(&targets[slot], slot, now_ns);
	}
	for (size_t i = last < 0 ? 0 : (size_t)last + 1; i < nr_targets; i++)
		clear(&targets[i]);
	return last < 0 ? 0 : (size_t)last + 1;
}

void targets_bury_dead(uint64_t now_ns)
{
	struct shmid_ds stat;

	for (size_t i = 0; i < nr_targets && reporter_has_room(); i++) {
		if (targets[i].what == DEAD && !reporter_has(targets[i].shmid) &&
			shmctl(targets[i].shmid, IPC_STAT, &stat) == 0)
			bury(&targets[i], stat.shm_nattch, now_ns);
	}
}

bool targets_is_restless(void)
{
	return is_restless;
}

static bool is_needed(const struct target *target)
{
	return target->what == STARTING || target->what == ALIVE || target->what == DEAD ||
	       (target->what == ELSEWHERE && target->since_ns);
}

bool targets_is_busy(void)
{
	for (size_t i = 0; i < nr_targets; i++) {
		if (is_needed(&targets[i]))
			return true;
	}
	return false;
}

size_t targets_poll_set(struct pollfd **set)
{
	size_t nr = 0;

	if (max_poll < nr_targets) {
		struct pollfd *more = realloc(poll_set, nr_targets * sizeof(*more));

		if (more) {
			poll_set = more;
			max_poll = nr_targets;
		}
	}
	for (size_t i = 0; i < nr_targets && nr < max_poll; i++) {
		if (targets[i].what == ALIVE && targets[i].watch.fd >= 0)
			poll_set[nr++] = (struct pollfd){targets[i].watch.fd, POLLIN, 0};
	}
	*set = poll_set;
	return nr;
}

void targets_give_up(void)
{
	for (size_t i = 0; i < nr_targets; i++) {
		if (targets[i].what == STARTING || targets[i].what == ALIVE)
			remove_segment(&targets[i]);
	}
}
