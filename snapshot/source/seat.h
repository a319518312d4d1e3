/* SPDX-License-Identifier: MIT */
/*
 * seat.h - the place of this viewer in the region of a process (region.h: struct lw_viewer).
 *
 * Taking it asks the process for the stream; it is kept by a sign of life a few times a second, and is
 * lost by one who was stopped for long. The region is mapped for writing for this alone.
 */
#ifndef LW_SNAPSHOT_SEAT_H
#define LW_SNAPSHOT_SEAT_H

#include "snapshot/source/source.h"

struct seat {
	struct lw_region_header *shared; /* NULL: nothing was asked for */
	struct lw_viewer *viewer;	 /* our place; NULL none */
	uint64_t token;			 /* in every message for us */
	long type;			 /* of those messages */
	int32_t msqid;			 /* the queue, which was seen to be one of ours; -1 none */
	int32_t pid;			 /* ours, as the process knows it; 0 it does not */
	uint32_t interval_ms, retry_ms;
	uint64_t beat_ns, retry_ns;
};

/* Asks for the stream; NULL, or why it may not be asked, or has no place for us. */
const char *seat_ask(struct seat *seat, const struct source_region *found, uint32_t interval_ms);
void seat_leave(struct seat *seat); /* the place, not the map */
void seat_close(struct seat *seat);

/* Is seen to a few times a second. is_unheard: nothing comes, so ask again now and then. True: a new place. */
bool seat_see_to(struct seat *seat, bool is_unheard, uint64_t now_ns);
/* It answers: the next time that it does not, ask again soon. */
void seat_is_heard(struct seat *seat);

void seat_set_interval(struct seat *seat, uint32_t interval_ms);
void seat_resync(struct seat *seat); /* everything is to be sent again */
void seat_received(struct seat *seat);

#endif
