/* SPDX-License-Identifier: MIT */
/*
 * sites.h - stack + kind + hint -> site id. Interned once, never moved, looked up without a lock.
 *
 * The index is an open-addressed table of 64-bit words (upper half of the hash, site id), doubled
 * when half full; an outgrown table is kept, because another thread may be reading it. Adding takes
 * lw_sites_lock; looking up takes nothing: an id is put in the index after its record is complete.
 */
#ifndef LW_RECORD_SITES_H
#define LW_RECORD_SITES_H

#include "preload/base/base.h"
#include "preload/share/box.h"
#include "preload/unwind/unwind.h"

bool lw_sites_init(void);

/* The id; 0 when there is no room (counted). Resolves stack->modules when the site is new. */
uint32_t lw_sites_intern(struct lw_stack *stack, enum lw_kind kind, uint32_t hint);

/* The frames of a site, valid for ever. */
LW_INLINE const uint64_t *lw_sites_pcs(uint32_t id)
{
	return lw_box_pool(lw_box_site(id)->stack_off);
}

/* After modules were unloaded: sites with frames in them are not found by new stacks any more. */
void lw_sites_retire(void);

#endif
