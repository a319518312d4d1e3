/* SPDX-License-Identifier: MIT */
/*
 * families.h - which release belongs to which allocation. Pure: no state, no calls.
 *
 * The outermost entry point decides: what operator new got from malloc is of family new, and
 * operator delete's inner free is not looked at. Forms of new and delete that name an alignment are
 * a family of their own, because they may only be released by each other.
 */
#ifndef LW_RECORD_FAMILIES_H
#define LW_RECORD_FAMILIES_H

#include "preload/record/blocks.h"
#include "preload/share/region.h"

/* Two bits a kind; what is not named is malloc's. A shift, not a switch: it is in every event. */
#define LW_FAMILY_BITS(kind, family) ((uint32_t)(family) << 2 * (kind))

_Static_assert(LW_NR_KINDS <= 16 && LW_FAMILY_MALLOC == 0 && LW_FAMILY_NEW_ARRAY < 4, "two bits a kind");

LW_INLINE enum lw_family lw_family_of(enum lw_kind kind)
{
	const uint32_t families = LW_FAMILY_BITS(LW_KIND_NEW, LW_FAMILY_NEW) |
			LW_FAMILY_BITS(LW_KIND_DELETE, LW_FAMILY_NEW) |
			LW_FAMILY_BITS(LW_KIND_NEW_ARRAY, LW_FAMILY_NEW_ARRAY) |
			LW_FAMILY_BITS(LW_KIND_DELETE_ARRAY, LW_FAMILY_NEW_ARRAY);

	return (enum lw_family)(families >> 2 * (uint32_t)kind & 3);
}

#endif
