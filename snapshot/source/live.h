/* SPDX-License-Identifier: MIT */
/*
 * live.h - a process that is watched while it runs, as a source: tick after tick of records.
 *
 * Asks the target for the stream (region.h: struct lw_viewer) and takes messages from its queue. A
 * target that does not answer within a second is read from its region instead, until it does. When it
 * ends, what its region holds is read a last time, and stays. Everything a queue or a region holds is
 * hostile: a message that is not for us, or is no message, is counted and thrown away.
 */
#ifndef LW_SNAPSHOT_LIVE_H
#define LW_SNAPSHOT_LIVE_H

#include "snapshot/source/source.h"

enum live_news {
	LIVE_NOTHING, /* the time is up, or the descriptor can be read */
	LIVE_TICK,    /* the records of one tick have gone to the sink */
	LIVE_END,     /* the last ones have: the target is gone, and BYE says how */
	LIVE_FAILED,  /* the sink refused a record */
};

enum live_way {
	LIVE_STARTING, /* no word yet */
	LIVE_STREAM,
	LIVE_REGION,   /* read from the region; `why` says why */
	LIVE_ENDED,
};

struct live_status {
	enum live_way way;
	const char *why;      /* a sentence of the region's being read; "" none */
	char task;	      /* state letter of the process in /proc: R S D T Z ... ; ? unknown */
	uint64_t rss_bytes;   /* 0 unknown */
	uint64_t nr_lost;     /* messages, that the target or we noticed */
	uint64_t nr_garbage;  /* messages that were none */
	uint64_t at_ns;	      /* age of the process at the last tick */
	uint32_t nr_ticks;
};

struct live;

/* NULL and *error. interval_ms is cut to what the region allows. */
struct live *live_open(pid_t pid, uint32_t interval_ms, struct source_error *error);

/*
 * Waits for the next tick, at most wait_ms, or until `fd` (-1 none) can be read. record->bytes of
 * each record are readable.
 */
enum live_news live_wait(
	struct live *live, int fd, uint32_t wait_ms, lw_emit_sink_fn *sink, void *context);

/* Everything again: at once from the region, and by the stream. For one whose records were thrown away. */
bool live_refresh(struct live *live, lw_emit_sink_fn *sink, void *context);

/* What the region holds now, as one dump. */
bool live_dump(struct live *live, lw_emit_sink_fn *sink, void *context);

void live_set_interval(struct live *live, uint32_t interval_ms);
const struct live_status *live_status(const struct live *live);
pid_t live_pid(const struct live *live);

/* Leaves: the target's helper ends if nobody else watches. NULL is fine. */
void live_close(struct live *live);

#endif
