/* SPDX-License-Identifier: MIT */
/*
 * guard.h - what each thread carries, and the gate that keeps our code from tracking itself.
 *
 * A hook may work only when the thread's gate is open AND the process is the one we set up
 * (lw_hot.active: its page is wiped by the kernel in every new child, raw clone included). The gate
 * is closed while we work, so that what we call, and a signal handler that interrupts us, passes
 * straight through to the real allocator. No foreign code that could throw or longjmp is ever called
 * with the gate closed: operator new's new_handler is called with it open. A signal handler may jump
 * out of our code all the same; the next event that is not inside the one left then opens the gate.
 */
#ifndef LW_BASE_GUARD_H
#define LW_BASE_GUARD_H

#include "preload/base/base.h"

enum lw_gate {
	LW_GATE_NEW,	/* the thread was never here: lw_track_enter_slow() sets it up */
	LW_GATE_OPEN,
	LW_GATE_LOOK,	/* open, but a macro's site is pending */
	LW_GATE_BUSY,	/* inside our code */
	LW_GATE_LATE,	/* the thread has given back what it had: it borrows for each event */
	LW_GATE_OFF,	/* this thread is not tracked */
	LW_GATE_PAUSED,	/* open, but the program has paused us here */
	LW_GATE_SAMPLED, /* open, but only some allocations are recorded (sample.h) */
};

struct lw_memos;
struct lw_trail;
struct lw_scratch;
struct lw_hints;
struct lw_pending;

/* One per thread, in initial-exec TLS. Written by its thread only. */
struct lw_thread {
	uint32_t gate;		/* enum lw_gate */
	uint32_t row;		/* index in the region's rows; 0: shared, atomic adds */
	struct lw_pending *sites, *next_site, *last_site; /* of macros; leakwatch.h pushes too. NULL: no room yet */
	uint32_t *dir;		/* the row's directory: chunk of 64 sites -> counters */
	struct lw_memos *memos;	/* table of remembered stacks */
	struct lw_trail *trail;	/* frames of the last walk; same mapping as memos */
	struct lw_scratch *scratch; /* room for one stack under construction; same mapping as memos */
	uintptr_t stack_lo, stack_hi; /* memory known to be readable, [lo, hi) */
	uintptr_t own_lo, own_hi; /* the same of the stack the thread was made with; 0 not known yet */
	int64_t live_bytes;	/* allocated minus freed since the last flush */
	int64_t live_max;	/* its highest value since the last flush */
	uint32_t is_registered;	/* will be told when the thread ends */
	uint32_t is_own_stack;	/* [lo, hi) is that stack: it stays as long as the thread */
	uint32_t is_late;	/* inside an event with borrowed things */
	uint32_t nr_paused;	/* leakwatch_pause() calls in force */
	uint32_t birth;		/* of blocks, at the tick below */
	int64_t tick_s, tick_ns; /* the coarse clock when it was last seen to move */
	struct lw_hints *hints;	/* what is known of macros' sites; same mapping as memos */
	uintptr_t entered_sp;	/* stack pointer of the event under way: one left by a longjmp is known by it */
	uint64_t until_sample;	/* bytes to be allocated before one is recorded; only while sampling */
	uint64_t dice;		/* 0: until_sample was never drawn */
	uintptr_t passing;	/* block that a foreign operator delete is given, and may give on to our hooks */
};

extern LW_TLS struct lw_thread lw_self;

/* For the shortest ways: its address is found once, and not anew at each use as the compiler would have it. */
LW_INLINE struct lw_thread *lw_own_thread(void)
{
	struct lw_thread *thread = &lw_self;

	__asm__("" : "+r"(thread));
	return thread;
}

LW_INLINE bool lw_gate_is_open(uint32_t gate)
{
	return gate == LW_GATE_OPEN || gate == LW_GATE_LOOK || gate == LW_GATE_PAUSED || gate == LW_GATE_SAMPLED;
}

#endif
