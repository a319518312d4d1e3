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

/* The region's arrays, as pointers; valid while lw_box is. */
LW_INLINE struct lw_site *lw_box_site(uint32_t id)
{
	return (struct lw_site *)((char *)lw_box + lw_box->sites.off) + id;
}

LW_INLINE struct lw_module *lw_box_module(uint32_t id)
{
	return (struct lw_module *)((char *)lw_box + lw_box->modules.off) + id;
}

LW_INLINE struct lw_event *lw_box_event(uint32_t id)
{
	return (struct lw_event *)((char *)lw_box + lw_box->events.off) + id;
}

LW_INLINE struct lw_row *lw_box_row(uint32_t index)
{
	return (struct lw_row *)((char *)lw_box + lw_box->rows.off + (size_t)index * lw_box->rows.stride);
}

LW_INLINE struct lw_mark *lw_box_mark(uint32_t id)
{
	return (struct lw_mark *)((char *)lw_box + lw_box->marks.off) + id;
}

LW_INLINE struct lw_hint *lw_box_hint(uint32_t id)
{
	return (struct lw_hint *)((char *)lw_box + lw_box->hints.off) + id;
}

LW_INLINE struct lw_scan_site *lw_box_scan(uint32_t site)
{
	return (struct lw_scan_site *)((char *)lw_box + lw_box->scans.off) + site;
}

LW_INLINE void *lw_box_pool(uint32_t units)
{
	return (char *)lw_box + lw_box->pool.off + (size_t)units * 8;
}

/*
 * Makes the region: shared, else private, else smaller; *refusal is 0 or the -errno for which the
 * shared one was refused. False: not even private memory; nothing is tracked then.
 */
bool lw_box_create(const struct lw_options *options, int *refusal);

/* In a forked child: a region of its own at the same address. False: the child is not tracked. */
bool lw_box_renew(void);

/* The queue of this process, named in the region; 0, or -errno if none can be had. A private region needs none. */
int32_t lw_box_add_queue(void);

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
