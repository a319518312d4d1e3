/* SPDX-License-Identifier: MIT */
/* stack.c - growing the interval of readable stack; see stack.h. */
#include "preload/unwind/stack.h"

#include "preload/base/sandbox.h"
#include "preload/base/sys.h"

extern void *__libc_stack_end; /* ld.so, GLIBC_2.2.5: where the kernel left the main stack's pointer */

static const uintptr_t page_bytes = 4096;

/*
 * mmap never hands out memory within this distance of the main stack's top (the kernel keeps a gap
 * of at least 128 MiB below it), so whatever lies there is the main stack.
 */
static const uintptr_t main_stack_reach = UINT64_C(120) << 20;

/* How far an interval may be stretched down when the stack grew since it was last looked at. */
static const uintptr_t max_stretch = UINT64_C(256) << 10;

/* How far below its control block a thread's stack pointer is looked for: it starts a few KiB below. */
static const uintptr_t own_reach = UINT64_C(64) << 10;

/* How far apart two frames may be before we stop believing it. */
static const uintptr_t max_frame = UINT64_C(16) << 20;

static bool is_main_stack(uintptr_t sp)
{
	uintptr_t top = (uintptr_t)__libc_stack_end;

	return sp < top && top - sp < main_stack_reach;
}

static bool pages_are_readable(uintptr_t from, uintptr_t to)
{
	for (uintptr_t page = from; page < to; page += page_bytes) {
		if (lw_sandboxed() || !lw_sys_is_readable(page))
			return false;
	}
	return true;
}

/* The first page that is not known to be there: with sp at a page's very beginning only what is below it is. */
static uintptr_t first_unknown(uintptr_t sp, uintptr_t page)
{
	return sp == page ? page : page + page_bytes;
}

static void use(struct lw_thread *thread, uintptr_t lo, uintptr_t hi, bool is_own)
{
	thread->stack_lo = lo;
	thread->stack_hi = hi;
	thread->is_own_stack = is_own;
	if (is_own) {
		thread->own_lo = lo;
		thread->own_hi = hi;
	}
}

/* Back on the stack the thread was made with, perhaps deeper than before. */
static bool enter_own(struct lw_thread *thread, uintptr_t sp, uintptr_t page)
{
	if (!thread->own_hi || page >= thread->own_hi || page + max_stretch < thread->own_lo)
		return false;
	if (page < thread->own_lo && !pages_are_readable(first_unknown(sp, page), thread->own_lo))
		return false;
	use(thread, page < thread->own_lo ? page : thread->own_lo, thread->own_hi, true);
	return true;
}

/* The thread control block, at the top of every thread's own stack, is near: then this is that stack. */
static bool find_own(struct lw_thread *thread, uintptr_t sp, uintptr_t page)
{
	uintptr_t top = (lw_thread_pointer() + page_bytes) & ~(page_bytes - 1);

	if (page >= top || top - page > own_reach || !pages_are_readable(first_unknown(sp, page), top))
		return false;
	use(thread, page, top, true);
	return true;
}

LW_COLD void lw_stack_enter(struct lw_thread *thread, uintptr_t sp)
{
	uintptr_t page = sp & ~(page_bytes - 1), top = (uintptr_t)__libc_stack_end;

	if (is_main_stack(sp)) {
		use(thread, thread->stack_hi == top && thread->stack_lo < page ? thread->stack_lo : page, top,
				true);
		return;
	}
	if (enter_own(thread, sp, page) || find_own(thread, sp, page))
		return;
	if (sp == page && !pages_are_readable(page, page + page_bytes))
		use(thread, page, page, false); /* the stack ends at the end of its memory */
	else
		use(thread, page, page + page_bytes, false);
}

LW_COLD bool lw_stack_switch(struct lw_thread *thread, uintptr_t sp)
{
	if (lw_sandboxed() || !lw_sys_is_readable(sp & ~(uintptr_t)7))
		return false;
	lw_stack_enter(thread, sp);
	return true;
}

LW_COLD bool lw_stack_extend(struct lw_thread *thread, uintptr_t address)
{
	uintptr_t end = (address + 8 + page_bytes - 1) & ~(page_bytes - 1);

	if (address & 7 || address < thread->stack_lo || address - thread->stack_hi > max_frame ||
			is_main_stack(thread->stack_lo))
		return false;
	if (!pages_are_readable(thread->stack_hi, end))
		return false;
	use(thread, thread->stack_lo, end, end > lw_thread_pointer() && thread->stack_lo <= lw_thread_pointer());
	return true;
}
