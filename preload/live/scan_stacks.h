/* SPDX-License-Identifier: MIT */
/*
 * scan_stacks.h - which part of the stacks is alive.
 *
 * A thread's stack counts from its stack pointer up; below it lie frames that have returned. The C
 * library keeps the stacks of ended threads for new ones: nothing in them counts. They are found by
 * the thread descriptor at the top of each, which is told by its pointers to itself and by the
 * process's two secrets that stand in each of them; its thread number is 0 when the thread has ended, -1
 * when somebody has joined it.
 */
#ifndef LW_LIVE_SCAN_STACKS_H
#define LW_LIVE_SCAN_STACKS_H

#include "preload/base/sys_x86_64.h"
#include "preload/live/scan_cut.h"
#include "preload/live/scan_maps.h"

/* Where a thread stood when the snapshot was taken. */
struct lw_scan_thread {
	int32_t tid;
	uint32_t nr_regs;
	uintptr_t sp; /* the lowest address of its stack that counts */
	uint64_t regs[LW_PTRACE_REGS];
	uint64_t frame[LW_NR_REGS]; /* DWARF numbering; its pc is 0 where that is not known */
};

/* How many of a thread's registers may hold the only pointer to a block. */
enum { LW_SCAN_REGISTERS = 16 };

struct lw_scan_threads {
	const struct lw_scan_thread *known;
	size_t nr_known;
	uintptr_t descriptor; /* of any living thread of known number: the secrets are read there */
	int32_t tid;	      /* its number; 0: all threads are dead, and their numbers gone: no stack is cut */
	int32_t main_tid;     /* the process's number */
	uintptr_t main_descriptor; /* of the main thread; 0 unknown */
	/* thread-locals of an allocator, no root either: from each descriptor; 0 bytes none */
	intptr_t locals_at;
	size_t locals_bytes;
};

/* Adds the dead parts to cuts. How many living threads were met whose stack pointer is not known. */
unsigned lw_scan_stacks_cut(const struct lw_maps *maps, const struct lw_scan_threads *threads,
		struct lw_scan_cuts *cuts);

#endif
