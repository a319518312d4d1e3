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

LW_INLINE enum lw_family lw_family_of(enum lw_kind kind)
{
	switch (kind) {
	case LW_KIND_NEW:
	case LW_KIND_DELETE:
		return LW_FAMILY_NEW;
	case LW_KIND_NEW_ARRAY:
	case LW_KIND_DELETE_ARRAY:
		return LW_FAMILY_NEW_ARRAY;
	default:
		return LW_FAMILY_MALLOC;
	}
}

#endif
