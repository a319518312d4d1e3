/* SPDX-License-Identifier: MIT */
/* seat.c - taking and keeping a viewer's place; see seat.h. */
#include "snapshot/source/seat.h"

#include <sys/random.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "preload/share/queue.h"

#define MS UINT64_C(1000000)

enum {
	BEAT_MS = 300,
	FIRST_RETRY_MS = 2000, /* after a helper could not be started; doubles */
	MOST_RETRY_MS = 120000,
};

static uint64_t new_token(void)
{
	uint64_t token = 0;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token) || !token)
		token = (uint64_t)getpid() << 32 | 1;
	return token;
}

static bool take(struct seat *seat)
{
	uint64_t start_ticks = 0;
	int32_t ppid;

	seat->viewer = NULL;
	seat->token = new_token();
	(void)lw_region_proc_stat(0, &start_ticks, &ppid);
	for (unsigned i = 0; i < LW_MAX_VIEWERS && !seat->viewer; i++) {
		struct lw_viewer *viewer = &seat->shared->viewers[i];
		uint64_t nobody = 0;

		if (!__atomic_compare_exchange_n(&viewer->token, &nobody, seat->token, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		seat->viewer = viewer;
		seat->type = (long)i + 1;
	}
	if (!seat->viewer)
		return false;
	seat->viewer->start_ticks = start_ticks;
	seat->viewer->pid = seat->pid;
	seat->viewer->interval_ms = seat->interval_ms;
	seat->viewer->nr_received = seat->viewer->nr_sent = seat->viewer->nr_lost = 0;
	lw_bump(&seat->viewer->beat, 1);
	lw_bump(&seat->viewer->nr_resyncs, 1);
	lw_store_release(&seat->viewer->is_ready, 1);
	__atomic_store_n(&seat->shared->is_watched, 1, __ATOMIC_SEQ_CST);
	return true;
}

/*
 * A server that gave up rights after its start may not write to the queue it has from before. Root, who alone may
 * watch it, lets it.
 */
static void admit(int32_t msqid, uint32_t euid)
{
	struct msqid_ds stat;

	if (msgctl(msqid, IPC_STAT, &stat) < 0 || stat.msg_perm.uid == euid)
		return;
	stat.msg_perm.uid = euid;
	(void)msgctl(msqid, IPC_SET, &stat);
}

const char *seat_ask(struct seat *seat, const struct source_region *found, uint32_t interval_ms)
{
	const char *why = place_forbids_helper(found->place.pid);
	int32_t msqid = lw_load(&found->region->msqid);
	/* root may look at the processes of others */
	uint32_t uid = geteuid() ? (uint32_t)geteuid() : found->region->uid;
	void *map;

	*seat = (struct seat){.msqid = -1, .interval_ms = interval_ms, .retry_ms = FIRST_RETRY_MS};
	if (why)
		return why;
	if (!lw_queue_is_ours(msqid, uid))
		return "it has no message queue";
	if (!geteuid())
		admit(msqid, place_euid(found->place.pid, uid));
	map = shmat(found->shmid, NULL, 0);
	if (map == (void *)-1)
		return "its region cannot be written to";
	seat->shared = map;
	seat->msqid = msqid;
	seat->pid = found->place.has_common_pids ? getpid() : 0;
	return take(seat) ? NULL : "all places for viewers are taken";
}

void seat_leave(struct seat *seat)
{
	uint64_t token = seat->token;

	if (!seat->viewer)
		return;
	lw_store(&seat->viewer->is_ready, 0);
	(void)__atomic_compare_exchange_n(
		&seat->viewer->token, &token, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	seat->viewer = NULL;
}

void seat_close(struct seat *seat)
{
	seat_leave(seat);
	if (seat->shared)
		(void)shmdt(seat->shared);
	seat->shared = NULL;
}

bool seat_see_to(struct seat *seat, bool is_unheard, uint64_t now_ns)
{
	bool is_new = false;

	if (!seat->shared)
		return false;
	if (seat->viewer && __atomic_load_n(&seat->viewer->token, __ATOMIC_ACQUIRE) != seat->token)
		seat->viewer = NULL; /* we were stopped for so long that we lost it */
	if (!seat->viewer) {
		if (now_ns < seat->retry_ns)
			return false;
		seat->retry_ns = now_ns + seat->retry_ms * MS;
		is_new = take(seat);
	}
	if (seat->viewer && now_ns - seat->beat_ns >= BEAT_MS * MS) {
		seat->beat_ns = now_ns;
		lw_bump(&seat->viewer->beat, 1);
	}
	if (is_unheard && now_ns >= seat->retry_ns && !lw_load(&seat->shared->is_watched)) {
		seat->retry_ns = now_ns + seat->retry_ms * MS;
		seat->retry_ms = seat->retry_ms * 2 < MOST_RETRY_MS ? seat->retry_ms * 2 : MOST_RETRY_MS;
		__atomic_store_n(&seat->shared->is_watched, 1, __ATOMIC_SEQ_CST);
	}
	return is_new;
}

void seat_is_heard(struct seat *seat)
{
	seat->retry_ms = FIRST_RETRY_MS;
}

void seat_set_interval(struct seat *seat, uint32_t interval_ms)
{
	seat->interval_ms = interval_ms;
	if (seat->viewer)
		lw_store(&seat->viewer->interval_ms, interval_ms);
}

void seat_resync(struct seat *seat)
{
	if (seat->viewer)
		lw_bump(&seat->viewer->nr_resyncs, 1);
}

void seat_received(struct seat *seat)
{
	if (seat->viewer)
		lw_bump(&seat->viewer->nr_received, 1);
}
