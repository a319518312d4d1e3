/* SPDX-License-Identifier: MIT */
/*
 * functions.h - the functions of one unit of debug information, and what was inlined into each.
 */
#ifndef LW_SNAPSHOT_FUNCTIONS_H
#define LW_SNAPSHOT_FUNCTIONS_H

#include "snapshot/symbols/ranges.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Inlined calls and blocks inside one another; what lies deeper is left out. */
	MAX_NESTING = 200,
};

/* In place of an index of inlined calls: the function itself. */
static const uint32_t NOT_INLINED = UINT32_MAX;

struct inlined {
	Dwarf_Die die;
	uint32_t caller; /* index in the same array, below its own, or NOT_INLINED */
};

struct function {
	Dwarf_Die die;
	bool is_read; /* the rest is filled at the first question */
	struct inlined *inlined;
	size_t nr_inlined, max_inlined;
	struct ranges ranges; /* unsorted; ref: index in inlined */
};

enum functions_depth {
	FUNCTIONS_NONE,	 /* nothing read yet */
	FUNCTIONS_OUTER, /* functions of the unit and its namespaces */
	FUNCTIONS_ALL,	 /* also those inside functions and types */
};

struct functions {
	enum functions_depth depth;
	struct function *v;
	size_t nr, max;
	struct ranges ranges; /* ref: index in v */
};

/*
 * The function of the unit whose code holds addr, or NULL. What claims to lie at or beyond end does
 * not count. The pointer is good until the next call.
 */
struct function *functions_find(
	struct functions *functions, Dwarf_Die *unit, uint64_t addr, uint64_t end);
void functions_fini(struct functions *functions);

/* The innermost call that was inlined at addr, an index in function->inlined, or NOT_INLINED. */
uint32_t function_innermost(struct function *function, uint64_t addr, uint64_t end);

/* Adds the ranges of a debugging entry, but for those of code that the linker threw away. */
void functions_add_ranges(struct ranges *ranges, Dwarf_Die *die, uint32_t ref, uint64_t end);

#endif
