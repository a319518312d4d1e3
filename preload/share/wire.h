/* SPDX-License-Identifier: MIT */
/*
 * wire.h - the records that leave the target: typed, versioned, fixed width.
 *
 * The same records travel in the queue, through the pipe of an exit report, and lie one after
 * another in a snapshot file. Only <stdint.h> types, no pointers, no enums, no bit-fields, explicit
 * padding, native byte order (a reader of another machine's file sees a wrong version and stops).
 * `type` is first, as msgsnd() wants it, and is never 0 or negative. `bytes` is the whole record,
 * head included, a multiple of 8, and at most LW_WIRE_MAX. Changing a layout bumps LW_WIRE_VERSION.
 *
 * Order in a complete dump: HELLO, TEXTs, MODULEs, then for each site SITE, COUNT and, where its live
 * bytes have changed, HISTORY (a SITE comes before anything that names it), SCAN_SITEs, CHAINs and
 * SCAN where a scan was made, EVENTs, MARKs, TOTALS, BYE. Counts are absolute values, so a lost record
 * costs freshness, not truth. The reader checks every count against `bytes` before it uses it.
 *
 * A stream says the same, but again and again what changed. It comes in messages of a TICK and then whole
 * records; a tick may take many messages. Numbers of messages without a gap say that all has come.
 * In a file of a stream each tick is followed by its one TICK.
 */
#ifndef LW_SHARE_WIRE_H
#define LW_SHARE_WIRE_H

#include <stdint.h>

#include "preload/share/chain.h"

#define LW_WIRE_VERSION 1u
#define LW_WIRE_MAX 8192u /* MSGMAX of an unconfigured kernel */

/* record types */
#define LW_WIRE_HELLO 1
#define LW_WIRE_TEXT 2
#define LW_WIRE_MODULE 3
#define LW_WIRE_SITE 4
#define LW_WIRE_COUNT 5
#define LW_WIRE_EVENT 6
#define LW_WIRE_TOTALS 7
#define LW_WIRE_BYE 8
#define LW_WIRE_HISTORY 9
#define LW_WIRE_SCAN 10
#define LW_WIRE_SCAN_SITE 11
#define LW_WIRE_CHAIN 12
#define LW_WIRE_TICK 13
#define LW_WIRE_MARK 16
#define LW_WIRE_NR_TYPES 17 /* one more than the highest */

struct lw_wire_head {
	int64_t type;
	uint32_t version;
	uint32_t bytes;
};

struct lw_wire_hello {
	struct lw_wire_head head;
	int32_t pid, ppid;
	uint32_t uid;
	uint32_t flags;		 /* LW_REGION_* of region.h */
	uint32_t state;		 /* enum lw_state */
	uint32_t end_kind;	 /* enum lw_end */
	uint32_t depth;
	int32_t exit_status;
	uint64_t started_real_ns;
	uint64_t seconds_ns;	 /* age of the process when the records were made, or at its end */
	uint64_t stderr_dev, stderr_ino;
};

/* one piece of a text; pieces of the same `what` come in order of `offset` */
#define LW_TEXT_EXE 1u
#define LW_TEXT_CMDLINE 2u /* arguments, each NUL-terminated */
#define LW_TEXT_OPTIONS 3u
#define LW_TEXT_SUPPRESSIONS 4u
struct lw_wire_text {
	struct lw_wire_head head;
	uint32_t what;
	uint32_t offset;
	uint32_t total_bytes;
	uint32_t nr_bytes;
	char text[]; /* nr_bytes, not terminated */
};

struct lw_wire_module {
	struct lw_wire_head head;
	uint64_t base, start, end;
	uint32_t id;
	uint16_t path_bytes;
	uint8_t build_id_bytes;
	uint8_t is_unloaded;
	uint8_t build_id[32];
	char path[]; /* path_bytes, not terminated */
};

struct lw_wire_site {
	struct lw_wire_head head;
	uint32_t id;
	uint32_t first_ms, oldest_ms; /* oldest_ms ~0: unknown */
	uint32_t hint_line;	      /* 0: no hint */
	uint16_t hint_file_bytes;
	uint16_t nr_frames;
	uint8_t kind;		      /* enum lw_kind */
	uint8_t flags;		      /* LW_SITE_* */
	uint8_t reserved[2];
	/* then nr_frames of uint64_t pc, nr_frames of uint16_t module id (LW_NO_MODULE: none), the hint's file name */
	uint64_t pc[];
};

struct lw_wire_count {
	struct lw_wire_head head;
	uint32_t site;
	uint32_t oldest_ms; /* birth of the oldest live block, ms after the start; ~0 unknown */
	uint64_t alloc_bytes, alloc_blocks;
	uint64_t freed_bytes, freed_blocks;
};

/* the last reachability scan; the SCAN_SITEs before it belong to it, what they do not name has no lost block */
struct lw_wire_scan {
	struct lw_wire_head head;
	uint32_t state; /* enum lw_scan_state */
	uint32_t why;	/* enum lw_scan_why */
	uint32_t flags; /* LW_SCAN_* */
	uint32_t nr_threads;
	uint64_t began_ns; /* after the start of the process */
	uint64_t took_ns, pause_ns;
	uint64_t live_blocks, live_bytes, swept_bytes, used_bytes, cpu_ns;
};

struct lw_wire_chain {
	struct lw_wire_head head;
	struct lw_chain chain;
};

struct lw_wire_scan_site {
	struct lw_wire_head head;
	uint32_t site;
	uint32_t reserved;
	uint64_t lost_bytes, lost_blocks;
	uint64_t indirect_bytes, indirect_blocks;
	uint64_t dragged_bytes, dragged_blocks;
};

struct lw_wire_event {
	struct lw_wire_head head;
	uint32_t what; /* enum lw_event_what */
	uint32_t alloc_site, free_site;
	uint32_t first_ms;
	uint64_t count, bytes, expected;
	uint32_t flags;	   /* LW_EVENT_* */
	uint32_t reserved;
};

struct lw_wire_mark {
	struct lw_wire_head head;
	uint64_t count;
	uint64_t first_bytes, first_blocks, last_bytes, last_blocks;
	uint32_t first_ms, last_ms;
	uint32_t name_bytes;
	uint32_t reserved;
	char name[]; /* name_bytes, not terminated */
};

/* one moment of a site's past */
struct lw_wire_sample {
	uint64_t ms;	/* after the start */
	uint64_t bytes; /* live then */
};

struct lw_wire_history {
	struct lw_wire_head head;
	uint32_t site;
	uint32_t nr_samples;
	uint64_t exit_began_ms;		 /* 0: exit has not begun, or what was held then is not known */
	uint64_t held_bytes, held_blocks; /* when exit began */
	struct lw_wire_sample samples[]; /* in order of time */
};

struct lw_wire_totals {
	struct lw_wire_head head;
	int64_t peak_bytes;
	uint64_t inherited_blocks;
	uint64_t own_bytes, nr_captures, nr_slow_captures, report_ns;
	uint64_t dropped[16]; /* enum lw_drop; the rest 0 */
};

#define LW_BYE_GONE 1u /* its reader found the process gone: killed, unless HELLO says how it ended */
#define LW_BYE_EXEC 2u /* its reader found another program in its place */
struct lw_wire_bye {
	struct lw_wire_head head;
	uint32_t nr_modules, nr_sites, nr_events; /* records sent, so that a cut file is noticed */
	uint32_t flags; /* LW_BYE_*; 0 from the process itself */
};

#define LW_TICK_LAST 1u	 /* the tick is complete with this message */
#define LW_TICK_FIRST 2u /* everything is sent (again) from this message on */
#define LW_TICK_STILL 4u /* exit frees what was held; what is known stays as it was before */
struct lw_wire_tick {
	struct lw_wire_head head;
	uint64_t token;	  /* of the viewer it is for */
	uint64_t at_ns;	  /* age of the process */
	uint32_t message; /* number of this message to this viewer */
	uint32_t tick;	  /* number of the tick */
	uint32_t nr_lost; /* messages to this viewer that were lost on the target's side */
	uint32_t flags;	  /* LW_TICK_* */
};

_Static_assert(sizeof(struct lw_wire_head) == 16, "wire");
_Static_assert(sizeof(struct lw_wire_tick) == 48, "wire");
_Static_assert(sizeof(struct lw_wire_hello) == 80, "wire");
_Static_assert(sizeof(struct lw_wire_site) == 40, "wire");
_Static_assert(sizeof(struct lw_wire_module) == 80, "wire");
_Static_assert(sizeof(struct lw_wire_count) == 56, "wire");
_Static_assert(sizeof(struct lw_wire_event) == 64, "wire");
_Static_assert(sizeof(struct lw_wire_mark) == 72, "wire");
_Static_assert(sizeof(struct lw_wire_history) == 48, "wire");
_Static_assert(sizeof(struct lw_wire_scan) == 96, "wire");
_Static_assert(sizeof(struct lw_wire_scan_site) == 72, "wire");
/* the deepest stack (128 frames) with the longest hint file fits one message */
_Static_assert(sizeof(struct lw_wire_site) + 128 * 10 + 4096 <= LW_WIRE_MAX, "wire");

#endif
