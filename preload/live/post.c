/* SPDX-License-Identifier: MIT */
/* post.c - packing and sending; see post.h. Runs in the helper: raw system calls only. */
#include "preload/live/post.h"

#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#include "preload/base/sys.h"
#include "preload/share/box.h"

enum {
	FIRST_PAUSE_NS = 30000, /* about what a reader needs to be awake and take a message */
	MOST_PAUSE_NS = 2000000,
	PATIENCE_NS = 300000000, /* since the viewer last took something */
	PATIENCES = 8,		 /* at most, of one message, however often it says it took something */
	MOST_TAKEN = 1 << 15,	 /* messages of no bytes: more than a queue holds */
};

void lw_post_open(struct lw_post *post, struct lw_viewer *viewer, uint64_t token, long type)
{
	post->viewer = viewer;
	post->token = token;
	post->type = type;
	post->nr_messages = post->nr_ticks = post->nr_received = 0;
	post->used = sizeof(struct lw_wire_tick);
	post->is_first = true;
	post->is_stalled = post->is_queue_gone = false;
}

static long put(const struct lw_post *post)
{
	return lw_syscall(SYS_msgsnd, lw_load(&lw_own.msqid), &post->message, post->used, IPC_NOWAIT);
}

/* Takes messages out again, of one viewer or (0) all that are there; how many. */
static uint32_t take_back(long type)
{
	char nothing[16 + sizeof(long)];
	uint32_t nr = 0;

	while (nr < MOST_TAKEN && lw_syscall(SYS_msgrcv, lw_load(&lw_own.msqid), nothing, 0, type,
						  IPC_NOWAIT | MSG_NOERROR) >= 0)
		nr++;
	return nr;
}

/* The queue stayed full: is it this viewer's fault, or a stranger's? */
static long make_room(struct lw_post *post)
{
	uint32_t nr_taken = take_back(post->type);

	post->viewer->nr_lost += nr_taken;
	if (nr_taken)
		return -EAGAIN; /* it does not read: no more for now */
	(void)take_back(0);
	return put(post);
}

static long put_patiently(struct lw_post *post)
{
	uint32_t received = lw_load(&post->viewer->nr_received);
	uint64_t waited_ns = 0;
	long pause_ns = FIRST_PAUSE_NS, err;
	int patience = PATIENCES;

	while ((err = put(post)) == -EAGAIN && waited_ns < PATIENCE_NS) {
		struct timespec pause = { .tv_nsec = pause_ns };
		uint32_t now = lw_load(&post->viewer->nr_received);

		(void)lw_syscall(SYS_nanosleep, &pause, 0);
		waited_ns += (uint64_t)pause_ns;
		pause_ns = pause_ns * 2 < MOST_PAUSE_NS ? pause_ns * 2 : MOST_PAUSE_NS;
		if (now != received && patience-- > 0) {
			received = now;
			waited_ns = 0;
			pause_ns = FIRST_PAUSE_NS;
		}
		if (lw_load(&post->viewer->token) != post->token)
			return -EAGAIN; /* it has left */
	}
	return err == -EAGAIN ? make_room(post) : err;
}

static uint64_t age_ns(void)
{
	struct timespec now = { 0 };

	(void)lw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec - lw_own.started_mono_ns;
}

bool lw_post_flush(struct lw_post *post, bool is_last)
{
	struct lw_wire_tick tick = {
		.head = { .type = LW_WIRE_TICK, .version = LW_WIRE_VERSION, .bytes = sizeof(tick) },
		.token = post->token,
		.at_ns = age_ns(),
		.message = post->nr_messages,
		.tick = post->nr_ticks,
		.nr_lost = lw_load(&post->viewer->nr_lost),
		.flags = (is_last ? LW_TICK_LAST : 0) | (post->is_first ? LW_TICK_FIRST : 0),
	};
	long err;

	post->message.type = post->type;
	memcpy(post->message.text, &tick, sizeof(tick));
	err = put_patiently(post);
	post->used = sizeof(tick);
	post->nr_messages++; /* lost ones have their number too */
	post->nr_ticks += is_last;
	if (err < 0) {
		lw_bump(&post->viewer->nr_lost, 1);
		post->is_stalled = true;
		post->nr_received = lw_load(&post->viewer->nr_received);
		post->is_queue_gone = err == -EIDRM || err == -EINVAL || err == -ENOSYS;
		return false;
	}
	post->is_first = false;
	lw_store(&post->viewer->nr_sent, post->nr_messages);
	return true;
}

bool lw_post_record(void *context, const struct lw_wire_head *record)
{
	struct lw_post *post = context;

	if (post->used + record->bytes > LW_WIRE_MAX && !lw_post_flush(post, false))
		return false;
	if (post->used + record->bytes > LW_WIRE_MAX)
		return true; /* larger than any message: no record of ours */
	memcpy(post->message.text + post->used, record, record->bytes);
	post->used += record->bytes;
	return true;
}
