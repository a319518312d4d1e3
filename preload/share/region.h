/* SPDX-License-Identifier: MIT */
/*
 * region.h - the layout of the black box: all that a report needs, in a SysV shared memory segment
 * that outlives the target. Offsets only, no pointers, so that every process may map it anywhere.
 *
 * Who writes: the target alone (and, for the words marked so, a cleaner or a viewer). Who reads:
 * the target, leakwatch-snapshot, leakwatch-cleaner. A reader other than the target treats every
 * field as hostile: it maps read-only, calls lw_region_check() on the header it copied, and checks
 * each index and offset against the capacities in that copy before it follows it (emit.c does).
 *
 * A site is one distinct (call stack, kind, macro hint). Ids are handed out in order from 1 and
 * never move; `nr_sites` is stored with release order after the record is complete, so a reader
 * that loads it with acquire sees whole records below it. Id 0 is the site "unknown", used when a
 * stack could not be kept.
 *
 * Counters are per thread ("row") and per site, and only summing all rows gives a truth: a block
 * that one thread allocated and another freed is positive in one row and subtracted in the other.
 * A row finds the counters of site s in chunk `dir[s / LW_CHUNK_SITES]`; index 0 means "no chunk
 * yet", all zero. Rows and chunks are reused when threads end: what they held is first added to
 * row 0, which all threads past LW_MAX_ROWS share and write with atomic adds.
 *
 * History: now and then the live bytes of all sites are noted. `samples` in the header says when; the
 * value of site s in sample i is word [i][s % LW_CHUNK_SITES] of tile s / LW_CHUNK_SITES in `history`
 * (0 where s was not yet born: s >= samples[i].nr_sites), in the form of lw_history_pack(). A sample
 * is written while is_kept is 0. The samples are in no order; their times give it.
 * What each site held when exit began is in `held`, good when exit_began_ms is not 0.
 */
#ifndef LW_SHARE_REGION_H
#define LW_SHARE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/share/chain.h"

#define LW_REGION_MAGIC UINT64_C(0x314e4749524b574c) /* "LWKRIGN1" */

enum {
	LW_REGION_VERSION = 1,
	LW_MAX_FRAMES = 128,	 /* deepest stack a site keeps */
	LW_MAX_MODULES = 2048,	 /* loaded objects ever seen; later ones are module LW_NO_MODULE */
	LW_NO_MODULE = 0xffff,
	LW_MAX_ROWS = 256,	 /* row 0 is shared, 1.. belong to one thread each */
	LW_CHUNK_SITES = 64,	 /* sites whose counters lie together: 2 KiB */
	LW_MAX_EVENTS = 1024,	 /* distinct mismatches and errors */
	LW_HISTORY_SAMPLES = 64, /* kept of a run, however long */
	LW_HISTORY_TILE_BYTES = LW_HISTORY_SAMPLES * LW_CHUNK_SITES * 4,
	LW_MAX_HINTS = 16384,	 /* distinct file:line pairs given by the header's macros */
	LW_BUILD_ID_BYTES = 32,	 /* longer ids are cut */
	LW_EXE_BYTES = 1024,
	LW_CMDLINE_BYTES = 2048,
	LW_MAX_MARKS = 64,	 /* distinct names given to leakwatch_mark() */
	LW_OPTIONS_BYTES = 4096,
	LW_SUPPRESSIONS_BYTES = 8192,
	LW_MAX_VIEWERS = 8,	 /* that may watch one process at a time */
	LW_LEAST_TICK_MS = 100,
	LW_MOST_TICK_MS = 3600000,
};

/* What kind of call a site is. The order is the wire's: append only. */
enum lw_kind {
	LW_KIND_UNKNOWN,
	LW_KIND_MALLOC,
	LW_KIND_CALLOC,
	LW_KIND_REALLOC,
	LW_KIND_ALIGNED,   /* memalign, aligned_alloc, posix_memalign, valloc, pvalloc */
	LW_KIND_NEW,
	LW_KIND_NEW_ARRAY,
	/* releases; they are sites only as the stack of a mismatch or an error */
	LW_KIND_FREE,
	LW_KIND_REALLOC_FREE,
	LW_KIND_DELETE,
	LW_KIND_DELETE_ARRAY,
	LW_NR_KINDS,
};

/* Why a record was not kept, or is not what it should be. Every report shows those that are not 0. */
enum lw_drop {
	LW_DROP_SITES,	    /* event counted at site 0: no room for another site or stack */
	LW_DROP_BLOCKS,	    /* block not recorded: no memory for its part of the block table */
	LW_DROP_REENTRANT,  /* allocation not recorded: made by a signal handler inside our code */
	LW_DROP_COUNTERS,   /* counters lost: no chunk left, even in row 0 */
	LW_DROP_MODULES,    /* frame kept without its module: LW_MAX_MODULES reached */
	LW_DROP_EVENTS,	    /* mismatch or error not kept: LW_MAX_EVENTS reached */
	LW_DROP_STALE,	    /* a record was found at the address of a new block, and replaced */
	LW_DROP_UNTRACKED,  /* allocation not recorded: made before or while we were brought up */
	LW_DROP_HINTS,	    /* macro's file and line not kept: LW_MAX_HINTS reached */
	LW_DROP_MARKS,	    /* leakwatch_mark() not kept: LW_MAX_MARKS names, or no room for one */
	LW_NR_DROPS,
};

/* region_header.state; only ever rises. */
enum lw_state {
	LW_STATE_STARTING,  /* being filled; not for readers */
	LW_STATE_RUNNING,
	LW_STATE_ENDING,    /* the target has begun its own report */
	LW_STATE_REPORTED,  /* the report is written, or there was nothing to say */
};

/* region_header.end_kind: how the target ended, as far as it could tell. */
enum lw_end {
	LW_END_NONE,	    /* still running, or killed */
	LW_END_EXIT,
	LW_END__EXIT,
	LW_END_QUICK_EXIT,
};

enum {
	LW_REGION_ROOT = 1u << 0,	    /* started under LeakWatch, not the child of a watched one */
	LW_REGION_STDERR_TTY = 1u << 1,	    /* descriptor 2 was a terminal at the start */
	LW_REGION_STDERR_OPEN = 1u << 2,    /* descriptor 2 was open at the start */
	LW_REGION_PRIVATE = 1u << 3,	    /* not a SysV segment: nobody else can see it */
	LW_REGION_WATCHED = 1u << 4,	    /* `follow` says this process reports to stderr too */
	LW_REGION_PEAK_SAMPLED = 1u << 5,   /* more than one thread: the peak is not exact */
	LW_REGION_REAPER = 1u << 6,	    /* orphans among its descendants become its children */
	LW_REGION_UNDER_REAPER = 1u << 7,   /* a watched ancestor is one: an orphan of ours may become its child */
	LW_REGION_POOR = 1u << 8,	    /* its hard limits are too low for a cleaner (limits.h) */
};

struct lw_module {
	uint64_t base;		/* load bias: file address = pc - base */
	uint64_t start, end;	/* mapped range [start, end) */
	uint32_t path_off;	/* pool offset / 8, NUL-terminated */
	uint16_t path_bytes;	/* without the NUL */
	uint8_t build_id_bytes; /* 0: none */
	uint8_t is_unloaded;
	uint8_t build_id[LW_BUILD_ID_BYTES];
};

struct lw_site {
	uint32_t stack_off;	/* pool offset / 8 of nr_frames uint64_t pcs, then nr_frames uint16_t modules */
	uint32_t hint;		/* 0, or index in the hints */
	uint64_t hash;		/* of stack, kind and hint */
	uint32_t first_ms;	/* first seen, ms after the start */
	uint32_t oldest_ms;	/* birth of the oldest live block, ms after the start; set by the end; ~0 unknown */
	uint16_t nr_frames;
	uint8_t kind;		/* enum lw_kind */
	uint8_t flags;		/* LW_SITE_* */
	uint8_t align_log2;	/* alignment that was asked for; 0 none */
	uint8_t reserved[3];
};

enum {
	LW_SITE_TRUNCATED = 1u << 0, /* the stack is deeper than `depth` */
	LW_SITE_DEAD = 1u << 1,	     /* a module of it was unloaded: no longer found by new events */
	LW_SITE_EXACT_PC = 1u << 2,  /* the first frame's pc is where it stopped, not a return address */
	LW_SITE_IGNORED = 1u << 3,   /* blocks that the program itself gave to leakwatch_ignore() */
};

struct lw_hint {
	uint32_t file_off; /* pool offset / 8, NUL-terminated */
	uint32_t line;
};

/* What one thread did at one site. Written by the row's owner alone (row 0: atomic adds). */
struct lw_count {
	uint64_t alloc_bytes, alloc_blocks;
	uint64_t freed_bytes, freed_blocks;
};

enum lw_row_state {
	LW_ROW_FREE,
	LW_ROW_USED,
};

/* Followed in memory by uint32_t dir[max_sites / LW_CHUNK_SITES]; row_stride bytes from row to row. */
struct lw_row {
	uint32_t state; /* enum lw_row_state */
	uint32_t tid;
	uint64_t reserved[7];
};

/* One moment at which the live bytes of all sites were noted. */
struct lw_sample {
	uint64_t ms;	   /* after the start */
	uint32_t nr_sites; /* ids below it have a value */
	uint32_t is_kept;  /* stored last, with release order */
};

/* What a site held when exit began. */
struct lw_held {
	uint64_t bytes, blocks;
};

/* A wrong release. `count` rises when the same pair of sites is seen again. */
struct lw_event {
	uint32_t what;	     /* enum lw_event_what */
	uint32_t alloc_site; /* where the block was allocated; 0 unknown */
	uint32_t free_site;  /* the release's own stack; its kind is a release kind */
	uint32_t flags;	     /* LW_EVENT_*, and the block's alignment: lw_event_alignment() */
	uint64_t count;
	uint64_t bytes;	     /* size of the first such block */
	/* size-mismatch: the size the release gave; alignment-mismatch: its alignment; cookie: bytes from the
	 * block to the pointer that was released (or back, when that lies before it) */
	uint64_t expected;
	uint32_t first_ms;
	uint32_t is_ready;   /* stored last, with release order */
};

enum lw_event_what {
	LW_EVENT_NONE,
	LW_EVENT_MISMATCH,	     /* release of another family */
	LW_EVENT_DOUBLE_FREE,
	LW_EVENT_UNKNOWN_FREE,
	LW_EVENT_SIZE_MISMATCH,
	LW_EVENT_ALIGNMENT_MISMATCH,
	LW_NR_EVENT_KINDS,
};

enum {
	LW_EVENT_COOKIE = 1u << 0, /* the pointer is off by the count that new[] keeps before objects */
	LW_EVENT_UNSURE = 1u << 1, /* the program has operators of its own, which may pair the two */
	LW_EVENT_ALIGN_AT = 8,	   /* log2 of the alignment the block was allocated with; 0 none */
};

/* How often the program passed a leakwatch_mark() of this name, and what it held then. */
struct lw_mark {
	uint32_t name_off; /* pool offset / 8, NUL-terminated */
	uint32_t is_ready; /* stored last, with release order */
	uint64_t count;
	uint64_t first_bytes, first_blocks, last_bytes, last_blocks;
	uint32_t first_ms, last_ms;
};

/*
 * A place for one viewer: how it asks for the stream, and what became of it. A viewer takes a free
 * one by exchanging `token` from 0 for a number of its own that is not 0, fills it in and sets
 * is_ready; it leaves by setting token to 0. The helper (live/helper.c) frees the place of one that
 * died. Messages for it have the type index + 1 and carry the token, so that those of a viewer
 * that had the place before are told from ours. All of it is hostile to the helper.
 */
struct lw_viewer {
	/* the viewer's */
	uint64_t token;	       /* 0: free */
	uint64_t start_ticks;  /* of the viewer, 0 unknown */
	int32_t pid;	       /* in the target's pid namespace, 0 it has none there: then beat tells */
	uint32_t interval_ms;
	uint32_t is_ready;     /* stored last, with release order */
	uint32_t beat;	       /* raised at least once a second */
	uint32_t nr_received;  /* messages taken out of the queue */
	uint32_t nr_resyncs;   /* raised to have everything sent again */
	/* the helper's */
	uint32_t nr_sent;      /* messages put in */
	uint32_t nr_lost;      /* messages that found no room, or were taken out again to make some */
	uint64_t reserved[2];
};

/*
 * What a reachability scan found at one site: blocks nothing points to (lost), blocks only lost
 * ones point to (indirect), and what the lost blocks of this site drag along, of any site.
 */
struct lw_scan_site {
	uint64_t lost_bytes, lost_blocks;
	uint64_t indirect_bytes, indirect_blocks;
	uint64_t dragged_bytes, dragged_blocks;
	uint64_t reserved[2];
};

enum lw_scan_state {
	LW_SCAN_NONE,	 /* never asked for */
	LW_SCAN_RUNNING, /* the first; later ones leave the last results in place until they have their own */
	LW_SCAN_DONE,	 /* the results of all sites are there */
	LW_SCAN_REFUSED, /* not begun; `why` says why */
	LW_SCAN_FAILED,	 /* begun and not finished */
	LW_NR_SCAN_STATES,
};

enum lw_scan_outcome {
	LW_SCAN_OUTCOME_NONE, /* not yet, or it died */
	LW_SCAN_OUTCOME_GOOD,
	LW_SCAN_OUTCOME_BAD,  /* state and why say what was wrong */
};

enum lw_scan_why {
	LW_SCAN_WHY_NONE,
	LW_SCAN_WHY_MEMORY,  /* the machine or the control group has not the room */
	LW_SCAN_WHY_CLONE,   /* no snapshot: the kernel refused a process */
	LW_SCAN_WHY_PROC,    /* /proc/self/maps cannot be read */
	LW_SCAN_WHY_TIME,    /* the time limit was reached */
	LW_SCAN_WHY_CRASH,   /* the scanner died */
	LW_SCAN_WHY_OFF,     /* option scan=never */
	LW_NR_SCAN_WHYS,
};

enum {
	LW_SCAN_APPROXIMATE = 1u << 0, /* registers of other threads unknown: whole stacks were roots */
	LW_SCAN_CONFIRMED = 1u << 1,   /* lost in two snapshots */
	LW_SCAN_AT_EXIT = 1u << 2,
};

/* The last scan. seq is odd while a scanner writes results: what is read then is thrown away. */
struct lw_scan {
	uint32_t seq;
	uint32_t state;	/* enum lw_scan_state */
	uint32_t why;	/* enum lw_scan_why */
	uint32_t flags;	/* LW_SCAN_* */
	uint32_t nr_scans; /* finished ones since the start */
	uint32_t nr_threads; /* besides the one that began the scan */
	uint64_t began_mono_ns;
	uint64_t took_ns;  /* of the scanner */
	uint64_t pause_ns; /* for which the program stood still */
	uint64_t live_blocks, live_bytes; /* seen in the table */
	uint64_t swept_bytes; /* memory read: roots and blocks */
	uint64_t used_bytes;  /* memory the scanner took for itself */
	uint32_t request;     /* raised by a viewer that wants one; */
	uint32_t served;      /* what it was when the last one began that has ended */
	uint32_t outcome;     /* of the scanner at work: enum lw_scan_outcome */
	uint32_t reserved0;
	uint64_t cpu_ns;      /* processor time of the scanner */
	uint32_t nr_chains;
	uint32_t nr_knocking; /* viewers that have stopped a thread to make it look here: scans wait until they let go */
	uint64_t knock_pc;    /* where they send it; 0 nowhere */
};

/* An array in the segment: where it starts, how many entries it has room for. */
struct lw_area {
	uint64_t off;
	uint32_t max;
	uint32_t stride; /* bytes from entry to entry */
};

struct lw_region_header {
	/* fixed before `state` leaves LW_STATE_STARTING */
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;	/* sizeof(struct lw_region_header) of the writer */
	uint64_t total_bytes;
	int32_t pid, ppid;	/* in the target's own pid namespace */
	uint32_t uid;
	uint32_t depth;		/* option `depth` in force */
	uint64_t start_ticks;	/* CLOCK_BOOTTIME when the region was made, in the unit of field 22 of
				 * /proc/PID/stat: see lw_region_is_reused(); 0 unknown */
	uint64_t started_mono_ns; /* CLOCK_MONOTONIC; ms fields count from here */
	uint64_t started_real_ns; /* CLOCK_REALTIME */
	uint64_t stderr_dev, stderr_ino;
	uint32_t granule_bytes;	/* of the block table */
	int32_t shmid;		/* -1: private */
	struct lw_area modules, sites, rows, chunks, events, hints, pool; /* pool: max is in units of 8 bytes */
	struct lw_area held, history; /* by site; by tile of LW_CHUNK_SITES sites */
	struct lw_area scans;  /* struct lw_scan_site, by site */
	struct lw_area chains; /* struct lw_chain */
	uint32_t exe_bytes, cmdline_bytes, options_bytes, suppressions_bytes;
	struct lw_area marks;

	/* written while running */
	uint32_t state __attribute__((aligned(64))); /* enum lw_state */
	uint32_t end_kind;	/* enum lw_end */
	uint32_t flags;		/* LW_REGION_* */
	uint32_t cleaner_pid;	/* written by the cleaner that has this region; 0 nobody */
	uint64_t ended_mono_ns;
	uint32_t nr_modules, nr_sites, nr_hints, nr_events; /* nr_sites counts id 0: ids are < nr_sites */
	uint32_t nr_rows;	/* rows ever used: indices below it are worth reading */
	uint32_t nr_chunks;	/* chunks ever used, index 0 never is */
	uint32_t pool_used;	/* units of 8 bytes */
	int32_t exit_status;	/* what the target passed to exit, where known; -1 unknown */
	uint32_t nr_marks;

	uint64_t exit_began_ms;	/* after the start; 0: exit has not begun, or nothing was noted */
	struct lw_sample samples[LW_HISTORY_SAMPLES];

	/* counted, cold */
	uint64_t dropped[LW_NR_DROPS] __attribute__((aligned(64)));
	uint64_t own_bytes;	/* memory LeakWatch mapped and touched for its own tables, about */
	uint64_t nr_captures;	/* stacks not answered by a memo: rule walks */
	uint64_t nr_slow_captures; /* stacks that needed the full evaluator */
	uint64_t report_ns;	/* time the end of the target spent in our report so far */

	/* written by threads now and then, hot enough for a line of their own */
	int64_t live_bytes __attribute__((aligned(64))); /* flushed from the threads, for the peak */
	int64_t peak_bytes;
	uint64_t inherited_blocks; /* of the parent, seen freed or still in the table at the end */

	struct lw_scan scan __attribute__((aligned(64))); /* written by the scanner, and by whoever starts it */

	/* watching; see struct lw_viewer */
	uint32_t is_watched __attribute__((aligned(64))); /* raised by viewers, taken back by the helper */
	int32_t helper_pid;	/* of the helper while it is there; in the target's pid namespace */
	int32_t msqid;		/* the queue; -1 none */
	uint32_t nr_helpers;	/* ever started */
	struct lw_viewer viewers[LW_MAX_VIEWERS] __attribute__((aligned(64)));

	char exe[LW_EXE_BYTES] __attribute__((aligned(64)));
	char cmdline[LW_CMDLINE_BYTES]; /* arguments, each NUL-terminated */
	char options[LW_OPTIONS_BYTES]; /* LEAKWATCH_OPTIONS text in force, NUL-terminated */
	char suppressions[LW_SUPPRESSIONS_BYTES]; /* the program's own, NUL-terminated */
};

_Static_assert(sizeof(struct lw_count) == 32, "wire");
_Static_assert(sizeof(struct lw_site) == 32, "wire");
_Static_assert(sizeof(struct lw_row) == 64, "wire");
_Static_assert(sizeof(struct lw_event) == 48, "wire");
_Static_assert(sizeof(struct lw_mark) == 56, "wire");
_Static_assert(sizeof(struct lw_module) == 64, "wire");
_Static_assert(sizeof(struct lw_sample) == 16, "wire");
_Static_assert(sizeof(struct lw_held) == 16, "wire");

/*
 * Bytes in 32 bits: exact below 16 MiB, then to 1 part in 2^23. No floating point: a conversion
 * would set the inexact flag of the program that is watched.
 */
static inline uint32_t lw_history_pack(uint64_t bytes)
{
	uint32_t shift = bytes >> 24 ? 40u - (uint32_t)__builtin_clzll(bytes) : 0;

	return shift << 24 | (uint32_t)(bytes >> shift);
}

static inline uint64_t lw_history_unpack(uint32_t packed)
{
	uint32_t shift = packed >> 24;

	return (uint64_t)(packed & 0xffffff) << (shift < 40 ? shift : 40);
}

_Static_assert(sizeof(struct lw_scan_site) == 64, "wire");
_Static_assert(sizeof(struct lw_scan) == 120, "wire");
_Static_assert(sizeof(struct lw_viewer) == 64, "one cache line each");

/* ---- geometry and access; shared by all programs, no allocation, no libc state ---- */

/*
 * lw_region_key - the SysV key of a process's region, attempt 0, 1, ... LW_REGION_KEYS-1.
 * Never the raw pid, which programs use themselves. The owner is told by the header, not the key.
 */
enum { LW_REGION_KEYS = 8 };
int32_t lw_region_key(int32_t pid, unsigned attempt);

/*
 * What the size of every region leaves beyond its last whole page. Whoever only has to know that a process
 * is watched is told so by the size of the segment, without mapping it.
 */
enum { LW_REGION_TAIL_BYTES = 1448 };

/* Bytes a region with room for max_sites sites takes; the areas are written into *header. */
uint64_t lw_region_layout(struct lw_region_header *header, uint32_t max_sites);

/*
 * lw_region_check - is this copied header one that this program can read, in a segment of
 * segment_bytes? NULL if so, else a static sentence for people ("target speaks region version 3, ...").
 */
const char *lw_region_check(const struct lw_region_header *copy, uint64_t segment_bytes);

/*
 * lw_region_attach - map the region of `pid` (as seen in this IPC and pid namespace) read-only.
 * 0 and *region, *bytes, *shmid; -ESRCH no such region, -EACCES another user's, -EPROTO bad header
 * (then *why is a static sentence). start_ticks: field 22 of the living process, 0 = do not compare.
 */
int lw_region_attach(int32_t pid, uint64_t start_ticks, const struct lw_region_header **region,
		uint64_t *bytes, int *shmid, const char **why);
/* The same by shmid. */
int lw_region_attach_id(int shmid, const struct lw_region_header **region, uint64_t *bytes,
		const char **why);
void lw_region_detach(const struct lw_region_header *region);

/* Moves the state of a region we own on from ENDING to REPORTED: its report is written. */
void lw_region_set_reported(int shmid);

/*
 * Is the process that now has the region's pid, started at process_ticks (field 22), another one? A process
 * makes its region after it was started, so one that is younger than the region did not make it. 0: unknown.
 * Saves each watched process from reading its own start time, which takes longer than making the region.
 */
static inline bool lw_region_is_reused(uint64_t region_ticks, uint64_t process_ticks)
{
	return region_ticks && process_ticks > region_ticks;
}

/*
 * Of a process that should be busy: a number that rises while it is (processor time, page faults), and
 * whether it waits for a disk just now. False when it cannot be read.
 */
bool lw_region_proc_work(int32_t pid, uint64_t *work, bool *is_at_disk);

/* Field 22 (start time) and 4 (parent) of /proc/PID/stat; false when it cannot be read. pid 0: self. */
bool lw_region_proc_stat(int32_t pid, uint64_t *start_ticks, int32_t *ppid);
/* Its address space; pid 0: our own. */
bool lw_region_proc_memory(int32_t pid, uint64_t *bytes);

#endif
