/* SPDX-License-Identifier: MIT */
/*
 * post.h - records into the messages of one viewer, and those into the queue, never for long.
 *
 * A viewer that is stopped, or slower than we are, finds the queue full: we wait for it a bounded
 * time, then take its messages out again, so that they are not in the way of other viewers, count
 * them, and leave it alone until it stirs. It sees the gap in the numbers and asks for everything
 * again; values are absolute, so nothing else is needed. A queue that strangers have filled is
 * emptied.
 */
#ifndef LW_LIVE_POST_H
#define LW_LIVE_POST_H

#include "preload/share/queue.h"
#include "preload/share/region.h"

struct lw_post {
	struct lw_viewer *viewer; /* its place in the region */
	uint64_t token;
	long type;		  /* of its messages */
	uint32_t nr_messages, nr_ticks;
	uint32_t used;		  /* bytes of the message */
	uint32_t nr_received;	  /* by the viewer, when it was given up */
	bool is_first;		  /* everything is sent from here on */
	bool is_stalled;
	bool is_queue_gone;
	struct lw_message message;
};

void lw_post_open(struct lw_post *post, struct lw_viewer *viewer, uint64_t token, long type);

/* A sink: puts the record into the message, sends that when it is full. */
bool lw_post_record(void *post, const struct lw_wire_head *record);

/* Sends what there is; is_last: with this the tick is complete. False: not sent, it is stalled now. */
bool lw_post_flush(struct lw_post *post, bool is_last);

#endif
