/* SPDX-License-Identifier: MIT */
/*
 * sites.h - stack + key (kind, alignment, hint) -> site id. Interned once, never moved, looked up without a lock.
 *
 * The index is an open-addressed table of 64-bit words (upper half of the hash, place of the stack), doubled
 * when three quarters full: the smaller it is, the fewer misses of the cache; an outgrown table is kept, because another thread may be reading it. Adding takes
 * lw_sites_lock; looking up takes nothing: a stack is put in the index after its record is complete.
 */
#ifndef LW_RECORD_SITES_H
#define LW_RECORD_SITES_H

#include "preload/base/base.h"
#include "preload/share/box.h"
#include "preload/unwind/unwind.h"

/*
 * What tells sites of one stack apart, in one number: kind, log2 of the alignment that was asked for
 * (0 none), hint, and whether the program said that what it holds is no leak.
 */
enum {
	LW_KEY_KIND_BITS = 5,
	LW_KEY_ALIGN_BITS = 6,
	LW_KEY_HINT_BITS = 14,
	LW_KEY_IGNORED = 1 << (LW_KEY_KIND_BITS + LW_KEY_ALIGN_BITS + LW_KEY_HINT_BITS),
};
_Static_assert(LW_NR_KINDS <= 1 << LW_KEY_KIND_BITS && LW_MAX_HINTS <= 1 << LW_KEY_HINT_BITS, "a key holds both");

LW_INLINE uint32_t lw_site_key(enum lw_kind kind, uint32_t align_log2, uint32_t hint)
{
	return (uint32_t)kind | align_log2 << LW_KEY_KIND_BITS |
	       hint << (LW_KEY_KIND_BITS + LW_KEY_ALIGN_BITS);
}

LW_INLINE enum lw_kind lw_key_kind(uint32_t key)
{
	return (enum lw_kind)(key & ((1u << LW_KEY_KIND_BITS) - 1));
}

LW_INLINE uint32_t lw_key_align(uint32_t key)
{
	return key >> LW_KEY_KIND_BITS & ((1u << LW_KEY_ALIGN_BITS) - 1);
}

LW_INLINE uint32_t lw_key_hint(uint32_t key)
{
	return key >> (LW_KEY_KIND_BITS + LW_KEY_ALIGN_BITS) & ((1u << LW_KEY_HINT_BITS) - 1);
}

bool lw_sites_init(void);

struct lw_site_found {
	uint32_t id;	     /* 0: there is no room (counted) */
	const uint64_t *pcs; /* its frames, valid for ever */
};

/* Resolves stack->modules when the site is new. */
struct lw_site_found lw_sites_intern(struct lw_stack *stack, uint32_t key);

/* The site like `id` whose blocks the program wants ignored; *stack is room to work in. 0: no room. */
uint32_t lw_sites_intern_ignored(uint32_t id, struct lw_stack *stack);

/* The frames of a site, valid for ever. */
LW_INLINE const uint64_t *lw_sites_pcs(uint32_t id)
{
	return lw_box_pool(lw_box_site(id)->stack_off);
}

/* After modules were unloaded: sites with frames in them are not found by new stacks any more. */
void lw_sites_retire(void);

#endif
