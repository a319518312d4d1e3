/* SPDX-License-Identifier: MIT */
/*
 * live.c - the viewer's end of the stream; see live.h.
 *
 * A SysV queue cannot be polled, so it is looked into: every few ms, or every 50 us while a tick is
 * coming in. A gap in the numbers of the messages means that everything is asked for again.
 */
#include "snapshot/source/live.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/base.h"
#include "preload/share/changes.h"
#include "preload/share/queue.h"
#include "snapshot/alloc.h"
#include "snapshot/model/decode.h"
#include "snapshot/source/alive.h"
#include "snapshot/source/farewell.h"
#include "snapshot/source/seat.h"

#define MS UINT64_C(1000000)

enum {
	ANSWER_MS = 1000,     /* how long a target may be silent */
	BUSY_PAUSE_NS = 50000,
	IDLE_PAUSE_MS = 15,
	COMPLETE_MS = 1500,    /* the helper's work on the region of a dead target */
	ORDINARY_MESSAGES = 4096, /* taken in one go */
};

struct live {
	struct live_status status;
	struct source_region found;
	struct seat seat;
	uint32_t interval_ms, next_message;
	uint32_t nr_helpers; /* it had when we came */
	bool is_in_tick;      /* a message came that did not end its tick */
	uint64_t heard_ns;    /* when the last message came, or we first asked */
	uint64_t looked_ns, read_ns;
	struct alive process;
	struct lw_changes *own; /* for reading the region ourselves */
	struct lw_message message;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

const struct live_status *live_status(const struct live *live)
{
	return &live->status;
}

pid_t live_pid(const struct live *live)
{
	return live->found.place.pid;
}

/* ---- opening and closing ---- */

struct live *live_open(pid_t pid, uint32_t interval_ms, struct source_error *error)
{
	struct live *live = alloc_array(1, sizeof(*live));
	uint64_t now = now_ns();
	uint32_t max_sites;

	if (!source_attach(pid, &live->found, error)) {
		free(live);
		return NULL;
	}
	live->interval_ms = interval_ms < LW_LEAST_TICK_MS ? LW_LEAST_TICK_MS
			    : interval_ms > LW_MOST_TICK_MS ? LW_MOST_TICK_MS
							    : interval_ms;
	live->own = alloc_array(1, sizeof(*live->own));
	max_sites = live->found.region->sites.max;
	if (max_sites > 1u << 21)
		max_sites = 1u << 21;
	if (!lw_changes_open(live->own, live->found.region, live->found.bytes,
		    alloc_array(max_sites, sizeof(uint64_t)), max_sites, NULL, NULL)) {
		(void)snprintf(error->text, sizeof(error->text), "the region changed while it was read");
		live_close(live);
		return NULL;
	}
	alive_open(&live->process, pid, live->found.shmid, live->found.is_alive);
	live->status.task = '?';
	live->status.why = "";
	live->heard_ns = live->looked_ns = now;
	live->seat.msqid = -1;
	live->nr_helpers = lw_load(&live->found.region->nr_helpers);
	if (live->found.is_alive && lw_load(&live->found.region->state) == LW_STATE_RUNNING)
		live->status.why = seat_ask(&live->seat, &live->found, live->interval_ms);
	if (!live->seat.viewer)
		live->status.way = LIVE_REGION;
	if (!live->status.why)
		live->status.why = "";
	return live;
}

void live_close(struct live *live)
{
	if (!live)
		return;
	seat_close(&live->seat);
	lw_region_detach(live->found.region);
	alive_close(&live->process);
	if (live->own)
		free(live->own->seen);
	free(live->own);
	free(live);
}

void live_set_interval(struct live *live, uint32_t interval_ms)
{
	live->interval_ms = interval_ms;
	seat_set_interval(&live->seat, interval_ms);
}

/* ---- messages ---- */

/* The head of a message that is for us; NULL: garbage. */
static const struct lw_wire_tick *tick_of(const struct live *live, size_t nr_bytes)
{
	const struct lw_wire_tick *tick = (const void *)live->message.text;

	if (nr_bytes < sizeof(*tick) || tick->head.type != LW_WIRE_TICK ||
		tick->head.bytes != sizeof(*tick) || tick->head.version != LW_WIRE_VERSION ||
		tick->token != live->seat.token)
		return NULL;
	return tick;
}

/* The records behind the TICK; false: the sink wants no more. */
static bool hand_over(struct live *live, size_t nr_bytes, lw_emit_sink_fn *sink, void *context)
{
	_Alignas(8) static unsigned char record[LW_WIRE_MAX];
	size_t at = sizeof(struct lw_wire_tick);

	while (nr_bytes - at >= sizeof(struct lw_wire_head)) {
		struct lw_wire_head head;

		memcpy(&head, live->message.text + at, sizeof(head));
		if (decode_head(&head) || head.bytes > nr_bytes - at)
			break;
		memcpy(record, live->message.text + at, head.bytes);
		at += head.bytes;
		if (head.type != LW_WIRE_TICK && !sink(context, (const void *)record))
			return false;
	}
	if (at != nr_bytes)
		live->status.nr_garbage++;
	return true;
}

static void follow_numbers(struct live *live, const struct lw_wire_tick *tick)
{
	if (tick->message != live->next_message) {
		live->status.nr_lost += tick->message - live->next_message < 1u << 30
						? tick->message - live->next_message
						: 1;
		if (!(tick->flags & LW_TICK_FIRST))
			seat_resync(&live->seat);
	}
	live->next_message = tick->message + 1;
}

static bool end_tick(struct live *live, uint32_t flags, lw_emit_sink_fn *sink, void *context)
{
	struct lw_wire_tick tick = {
		.head = {.type = LW_WIRE_TICK, .version = LW_WIRE_VERSION, .bytes = sizeof(tick)},
		.at_ns = live->status.at_ns,
		.tick = live->status.nr_ticks++,
		.nr_lost = (uint32_t)live->status.nr_lost,
		.flags = LW_TICK_LAST | flags,
	};

	return sink(context, &tick.head);
}

/* Takes what is in the queue, up to the end of a tick. */
static enum live_news take_messages(struct live *live, lw_emit_sink_fn *sink, void *context)
{
	for (int i = 0; i < ORDINARY_MESSAGES; i++) {
		ssize_t got = msgrcv(live->seat.msqid, &live->message,
			sizeof(live->message.text), live->seat.type, IPC_NOWAIT | MSG_NOERROR);
		const struct lw_wire_tick *tick;
		bool is_last;

		if (got < 0)
			return LIVE_NOTHING;
		seat_received(&live->seat);
		tick = tick_of(live, (size_t)got);
		if (!tick) {
			live->status.nr_garbage++;
			continue;
		}
		is_last = tick->flags & LW_TICK_LAST;
		follow_numbers(live, tick);
		live->heard_ns = now_ns();
		live->is_in_tick = !is_last;
		live->status.at_ns = tick->at_ns;
		if (!hand_over(live, (size_t)got, sink, context))
			return LIVE_FAILED;
		if (!is_last)
			continue;
		live->status.way = LIVE_STREAM;
		live->status.why = "";
		seat_is_heard(&live->seat);
		return end_tick(live, 0, sink, context) ? LIVE_TICK : LIVE_FAILED;
	}
	return LIVE_NOTHING;
}

/* ---- the region ---- */

static void note_age(struct live *live, uint64_t now)
{
	uint64_t started_ns = live->found.region->started_mono_ns;
	uint64_t ended_ns = lw_load(&live->found.region->ended_mono_ns);

	ended_ns = ended_ns ? ended_ns : now;
	live->status.at_ns = ended_ns > started_ns ? ended_ns - started_ns : 0;
}

static enum live_news read_region(struct live *live, uint64_t now, lw_emit_sink_fn *sink, void *context)
{
	live->own->dump.sink = sink;
	live->own->dump.context = context;
	live->read_ns = now;
	note_age(live, now);
	if (!lw_changes_tick(live->own, now) || !end_tick(live, 0, sink, context))
		return LIVE_FAILED;
	return LIVE_TICK;
}

bool live_refresh(struct live *live, lw_emit_sink_fn *sink, void *context)
{
	lw_changes_reset(live->own);
	seat_resync(&live->seat);
	return read_region(live, now_ns(), sink, context) == LIVE_TICK;
}

bool live_dump(struct live *live, lw_emit_sink_fn *sink, void *context)
{
	return lw_emit_region(live->found.region, live->found.bytes, now_ns(), sink, context);
}

/* Exit has begun, or is over: what it frees from now on is not what the program held. */
static bool is_ending(const struct live *live)
{
	const struct lw_region_header *region = live->found.region;

	return lw_load_acquire(&region->exit_began_ms) || lw_load_acquire(&region->state) >= LW_STATE_ENDING;
}

/* Exit frees what the person wants to see, and may take its time: the last state stays, and time goes on. */
static enum live_news read_last(struct live *live, uint64_t now, lw_emit_sink_fn *sink, void *context)
{
	live->own->dump.sink = sink;
	live->own->dump.context = context;
	live->read_ns = now;
	live->status.why = "it is ending, and this is what it held before";
	note_age(live, now);
	if (!lw_dump_hello(&live->own->dump, now) || !lw_dump_totals(&live->own->dump) ||
		!end_tick(live, LW_TICK_STILL, sink, context))
		return LIVE_FAILED;
	return LIVE_TICK;
}

/*
 * The target is gone. After a kill: what it left behind, completed by its helper if there was one. After an
 * exit, which has freed what the person wants to see, only how it ended: the last state stays.
 */
static enum live_news read_end(struct live *live, uint32_t how, lw_emit_sink_fn *sink, void *context)
{
	const struct timespec pause = {.tv_nsec = 5 * MS};
	struct farewell farewell = {sink, context, how};
	uint64_t now = now_ns();
	bool is_still, is_good;

	while (lw_load(&live->found.region->helper_pid) && now_ns() - now < COMPLETE_MS * MS)
		(void)nanosleep(&pause, NULL);
	now = now_ns();
	live->own->dump.sink = farewell_record;
	live->own->dump.context = &farewell;
	is_still = live->status.nr_ticks && is_ending(live);
	if (is_still)
		is_good = lw_dump_hello(&live->own->dump, now) && lw_dump_totals(&live->own->dump) &&
			  lw_dump_bye(&live->own->dump);
	else
		is_good = lw_emit_region(live->found.region, live->found.bytes, now, farewell_record, &farewell);
	live->own->dump.sink = sink;
	live->own->dump.context = context;
	if (live->status.way != LIVE_ENDED)
		note_age(live, now);
	live->status.way = LIVE_ENDED;
	live->status.why = "";
	seat_leave(&live->seat);
	return is_good && end_tick(live, is_still ? LW_TICK_STILL : 0, sink, context) ? LIVE_END : LIVE_FAILED;
}

/* ---- the process ---- */

/* How it ended, LW_BYE_*; 0: it runs. */
static uint32_t end_of(const struct live *live)
{
	if (alive_is_dead(&live->process))
		return LW_BYE_GONE;
	if (lw_load_acquire(&live->found.region->state) < LW_STATE_ENDING && alive_has_exec(&live->process))
		return LW_BYE_EXEC;
	return 0;
}

static const char *silence_of(const struct live *live)
{
	const struct lw_region_header *region = live->found.region;

	if (strchr("tT", live->status.task))
		return "the process is stopped";
	if (lw_load(&region->helper_pid))
		return "its helper does not answer";
	if (lw_load(&region->nr_helpers) != live->nr_helpers)
		return "its helper could not stay";
	return strchr("DS", live->status.task) ? "the process sleeps: it has not allocated since we asked"
					       : "the process does not answer";
}

static bool is_silent(const struct live *live, uint64_t now)
{
	uint64_t patience_ms = ANSWER_MS;

	if (live->status.way == LIVE_STREAM)
		patience_ms += live->interval_ms;
	return now - live->heard_ns > patience_ms * MS;
}

static void pause_for(const struct live *live, int fd, uint64_t until_ns, uint64_t now)
{
	struct pollfd input = {fd, POLLIN, 0};
	struct timespec pause = {.tv_nsec = live->is_in_tick ? BUSY_PAUSE_NS : IDLE_PAUSE_MS * (long)MS};

	if (now + (uint64_t)pause.tv_nsec > until_ns)
		pause.tv_nsec = until_ns > now ? (long)(until_ns - now) : 0;
	(void)ppoll(&input, fd >= 0, &pause, NULL);
}

static bool has_input(int fd)
{
	struct pollfd input = {fd, POLLIN, 0};

	return fd >= 0 && poll(&input, 1, 0) > 0;
}

/* Things to be seen to a few times a second. 0, or how the target ended. */
static uint32_t look_around(struct live *live, uint64_t now)
{
	if (now - live->looked_ns < 100 * MS && live->status.task != '?')
		return 0;
	live->looked_ns = now;
	alive_look(&live->process, &live->status.task, &live->status.rss_bytes);
	if (seat_see_to(&live->seat, live->status.way == LIVE_REGION, now)) {
		live->next_message = 0;
		live->is_in_tick = false;
	}
	return end_of(live);
}

enum live_news live_wait(
	struct live *live, int fd, uint32_t wait_ms, lw_emit_sink_fn *sink, void *context)
{
	uint64_t now, until_ns = now_ns() + wait_ms * MS;

	for (;;) {
		bool is_over = live->status.way == LIVE_ENDED || (live->status.nr_ticks && is_ending(live));
		enum live_news news =
			live->seat.viewer && !is_over ? take_messages(live, sink, context) : LIVE_NOTHING;
		uint32_t end;

		if (news != LIVE_NOTHING)
			return news;
		now = now_ns();
		end = live->status.way == LIVE_ENDED ? 0 : look_around(live, now);
		if (end)
			return read_end(live, end, sink, context);
		if (live->status.way < LIVE_REGION && is_silent(live, now)) {
			live->status.way = LIVE_REGION;
			live->status.why = silence_of(live);
			live->is_in_tick = false;
		}
		if (live->status.way == LIVE_REGION &&
			(!live->read_ns || now - live->read_ns >= live->interval_ms * MS))
			return is_over ? read_last(live, now, sink, context)
				       : read_region(live, now, sink, context);
		if (has_input(fd) || now >= until_ns)
			return LIVE_NOTHING;
		pause_for(live, fd, until_ns, now);
	}
}
