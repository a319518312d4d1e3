/* SPDX-License-Identifier: MIT */
/*
 * box.h - the target's own side of the black box: making the region, and handing out its parts.
 *
 * lw_box points at the region of this process, or at a private stand-in when the system has no
 * shared memory for us. It is mapped once and stays at its address: a forked child gets a segment
 * of its own, with a copy of sites and modules and with empty counters, mapped over the parent's, so
 * that pointers into the region hold in both. Functions ending in _locked need lw_sites_lock.
 */
#ifndef LW_SHARE_BOX_H
#define LW_SHARE_BOX_H

#include "preload/base/base.h"
#include "preload/base/lock.h"
#include "preload/share/options.h"
#include "preload/share/region.h"

extern struct lw_lock lw_sites_lock;
extern struct lw_region_header *lw_box;

/*
 * What this process itself goes by. The region says the same to others; but whoever may read it may also
 * write into it, so where things lie, how many there are and who we are is never read from there. The
 * numbers are written under lw_sites_lock, but for nr_chunks, and read without. A thread's counters are found
 * through directories of our own, too (threads.c); those in the region are for readers.
 */
struct lw_box_own {
	/* the arrays, and how many entries they have room for */
	struct lw_site *sites;
	struct lw_module *modules;
	struct lw_event *events;
	struct lw_hint *hints;
	struct lw_mark *marks;
	struct lw_held *held;
	struct lw_scan_site *scans;
	struct lw_chain *chains;
	char *rows, *history, *pool;
	size_t row_stride;
	uint32_t max_sites, max_modules, max_events, max_hints, max_marks, max_chunks;
	uint32_t max_pool; /* units of 8 bytes; so few that a stack that starts at the last ends in the region */
	/* as in struct lw_region_header */
	uint64_t total_bytes, started_mono_ns;
	uint32_t nr_modules, nr_sites, nr_hints, nr_events, nr_rows, nr_chunks, pool_used, nr_marks;
	uint32_t exe_bytes, cmdline_bytes, options_bytes, suppressions_bytes;
	int32_t pid, shmid, msqid;
	uint32_t uid;
};

extern struct lw_box_own lw_own;

/* A number in both places, after the record that it counts. */
#define LW_BOX_PUBLISH(number, value) \
	do { \
		uint32_t published = (value); \
		lw_store_release(&lw_own.number, published); \
		lw_store_release(&lw_box->number, published); \
	} while (0)

/* The region's arrays, as pointers; valid while lw_box is. The ids are ours: < lw_own.nr_... */
LW_INLINE struct lw_site *lw_box_site(uint32_t id)
{
	return lw_own.sites + id;
}

LW_INLINE struct lw_module *lw_box_module(uint32_t id)
{
	return lw_own.modules + id;
}

LW_INLINE struct lw_event *lw_box_event(uint32_t id)
{
	return lw_own.events + id;
}

LW_INLINE struct lw_row *lw_box_row(uint32_t index)
{
	return (struct lw_row *)(void *)(lw_own.rows + index * lw_own.row_stride);
}

LW_INLINE struct lw_mark *lw_box_mark(uint32_t id)
{
	return lw_own.marks + id;
}

LW_INLINE struct lw_hint *lw_box_hint(uint32_t id)
{
	return lw_own.hints + id;
}

LW_INLINE struct lw_scan_site *lw_box_scan(uint32_t site)
{
	return lw_own.scans + site;
}

LW_INLINE struct lw_chain *lw_box_chain(uint32_t index)
{
	return lw_own.chains + index;
}

/* `units` stands in the region, in the record that points to it: one that somebody else wrote there leads to its start. */
LW_INLINE void *lw_box_pool(uint32_t units)
{
	return lw_own.pool + (size_t)(units < lw_own.max_pool ? units : 0) * 8;
}

/* Frames of a site, not more than one can have. */
LW_INLINE uint32_t lw_box_nr_frames(const struct lw_site *site)
{
	uint32_t nr = lw_load(&site->nr_frames);

	return nr <= LW_MAX_FRAMES ? nr : 0;
}

/*
 * Makes the region: shared, else private, else smaller; *refusal is 0 or the -errno for which the
 * shared one was refused. other_bytes: address space that our other tables will take. False: not even private memory; nothing is tracked then.
 */
bool lw_box_create(const struct lw_options *options, uint64_t other_bytes, int *refusal);

/*
 * Where there is no room for tables: a small segment all the same, so that this process's children know
 * themselves as children, and keep their messages to themselves. It has no header, so readers take it for a
 * region that is being made. True when this is the process that was started, whose stderr is ours to use.
 */
bool lw_box_put_sign(void);

/* In a forked child: a region of its own at the same address. False: the child is not tracked. */
bool lw_box_renew(void);

/* The queue of this process, named in the region; 0, or -errno if none can be had. A private region needs none. */
int32_t lw_box_add_queue(void);

/* Notes which queue it is; -1 none. */
void lw_box_set_queue(int32_t msqid);

/* Takes region and queue out of the system: nobody can attach any more. This process keeps the region. */
void lw_box_remove(void);

/* Can others attach to the region by its number, here and now? */
bool lw_box_is_shared(void);

/* Notes whether this process adopts the orphans among its descendants. */
void lw_box_set_reaper(bool is_one);

/* Room in the pool, in units of 8 bytes from its start; 0: full. Zeroed. */
uint32_t lw_box_take_locked(size_t nr_bytes) LW_HOLDS(lw_sites_lock);

/* An index of a zeroed chunk of counters, 0: none left. Any thread, no lock. */
uint32_t lw_box_take_chunk(void);

/* Bytes of the region that are in use. */
uint64_t lw_box_used_bytes(void);

/* Milliseconds since the start, by the coarse clock. */
uint32_t lw_box_now_ms(void);

LW_INLINE void lw_box_drop(enum lw_drop why)
{
	if (lw_box)
		lw_add(&lw_box->dropped[why], 1);
}

#endif
