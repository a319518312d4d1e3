/* SPDX-License-Identifier: MIT */
/*
 * stack.h - which memory of the current stack may be read.
 *
 * Each thread remembers one interval known to be mapped and readable. On its own stack that is from
 * the stack pointer to the stack's top (main thread: __libc_stack_end; others: the thread control
 * block, which glibc puts at the top), verified page by page as walks reach further up, and it holds
 * as long as the thread. On another stack (coroutine, sigaltstack) nothing is remembered from one
 * event to the next: it may be unmapped and another, smaller one lie at the same place. Asking
 * the kernel whether a page is readable costs about 0.1 us.
 */
#ifndef LW_UNWIND_STACK_H
#define LW_UNWIND_STACK_H

#include "preload/base/base.h"
#include "preload/base/guard.h"

/* Makes the interval hold sp, with what lies above it as far as is known for nothing. */
void lw_stack_enter(struct lw_thread *thread, uintptr_t sp);

/* The same for a stack pointer that was read from memory, and may be anything. False: nothing is there. */
bool lw_stack_switch(struct lw_thread *thread, uintptr_t sp);

/* Before an event on a stack that may have changed since the last one: know nothing of it. */
LW_INLINE void lw_stack_refresh(struct lw_thread *thread)
{
	if (LW_UNLIKELY(!thread->is_own_stack))
		thread->stack_lo = thread->stack_hi = 0;
}

/* Tries to stretch the interval upward so that it holds the word at address. */
bool lw_stack_extend(struct lw_thread *thread, uintptr_t address);

/* address: a multiple of 8, as both ends are, so that no sum can overflow. */
LW_INLINE bool lw_stack_holds(struct lw_thread *thread, uintptr_t address)
{
	return LW_LIKELY(address >= thread->stack_lo && address < thread->stack_hi) ||
	       lw_stack_extend(thread, address);
}

#endif
