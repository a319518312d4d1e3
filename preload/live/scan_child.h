/* SPDX-License-Identifier: MIT */
/*
 * scan_child.h - the scanner: what runs in the copy of the process.
 *
 * It has the memory of the process at one moment to itself, and nothing else of it: descriptors are closed,
 * signals are blocked, the hot page was wiped by the kernel. Raw system calls and own mappings only.
 */
#ifndef LW_LIVE_SCAN_CHILD_H
#define LW_LIVE_SCAN_CHILD_H

#include "preload/base/base.h"
#include "preload/base/hot.h"
#include "preload/live/scan_stacks.h"

enum { LW_SCAN_MAX_THREADS = 1024, LW_SCAN_VECTOR_BYTES = 4096, LW_SCAN_LIST_BYTES = 256 << 20 };

/* One scan alone, or two of which the second confirms the first. */
enum lw_scan_step {
	LW_SCAN_STEP_ONLY,
	LW_SCAN_STEP_FIRST,  /* writes what is not reachable into the list */
	LW_SCAN_STEP_SECOND, /* judges only what is in the list */
};

/* What the scanner is told; filled in before the clone. */
struct lw_scan_plan {
	struct lw_hot_values hot; /* the page is zero in the copy */
	uintptr_t main_descriptor; /* of the main thread; 0 unknown */
	uintptr_t descriptor;	  /* of the thread that began the scan */
	int32_t tid, pid;
	int32_t parent;		  /* of the keeper: when it has ended, nobody waits for the scan; 0 the scan is for after its end */
	intptr_t locals_at;	  /* thread-locals of the allocator, from a descriptor */
	size_t locals_bytes;
	uint32_t flags;		  /* LW_SCAN_* of region.h */
	enum lw_scan_step step;
	bool is_shared;		  /* the scanner runs in the memory of the process, which waits for it */
	uint64_t stopped_ns;	  /* when the first thread was stopped, in ns of CLOCK_MONOTONIC */
	uint32_t freeze;	  /* enum lw_option_freeze: how other threads are stopped */
	unsigned char *vectors;	  /* vector registers of stopped threads, LW_SCAN_VECTOR_BYTES each; NULL none */
	uint64_t *list;		  /* shared with the scanner: how many, then address and birth of each, rising */
	size_t nr_threads;	  /* with known stack pointers, the beginner among them */
	struct lw_scan_thread threads[LW_SCAN_MAX_THREADS];
};

__attribute__((noreturn)) void lw_scan_child(const struct lw_scan_plan *plan);

#endif
