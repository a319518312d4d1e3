/* SPDX-License-Identifier: MIT */
/*
 * hidden.h - the address of a new block, in disguise while we work on it.
 *
 * What our functions spill stays behind on the program's stack when they return, in memory that the program's
 * next frames may cover without writing to it. An address there would keep the block from ever being found
 * lost. So a hook holds on to the complement only, and the address is made where it is needed.
 */
#ifndef LW_RECORD_HIDDEN_H
#define LW_RECORD_HIDDEN_H

#include "preload/base/base.h"

struct lw_hidden {
	uintptr_t complement;
};

/* The compiler is not to know that both are the same, or it would keep what costs it less. */
LW_INLINE struct lw_hidden lw_hide(const void *ptr)
{
	struct lw_hidden hidden = { ~(uintptr_t)ptr };

	__asm__ volatile("" : "+r"(hidden.complement));
	return hidden;
}

LW_INLINE uintptr_t lw_reveal(struct lw_hidden hidden)
{
	__asm__ volatile("" : "+r"(hidden.complement));
	return ~hidden.complement;
}

#endif
