/* SPDX-License-Identifier: MIT */
/*
 * units.h - what the debug information of an object says about an address.
 *
 * Three levels, each read when it is first needed: the ranges of all units; the functions of a
 * unit; the inlined calls of a function. So the first question about a program with hundreds of MB
 * of debug information reads one entry a unit and one unit's functions, and all others are
 * look-ups.
 */
#ifndef LW_SNAPSHOT_UNITS_H
#define LW_SNAPSHOT_UNITS_H

#include "snapshot/symbols/functions.h"
#include "snapshot/symbols/names.h"
#include "snapshot/symbols/ranges.h"
#include "snapshot/symbols/symbols.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MAX_FRAMES = MAX_NESTING + 1,
};

struct unit;

struct units {
	Dwfl_Module *module;
	uint64_t bias; /* Dwfl's address minus the one in the debug information */
	uint64_t end;  /* no code lies beyond, as the debug information counts */
	bool is_read;
	struct unit *v;
	size_t nr, max;
	struct ranges ranges; /* ref: index in v */
};

/* The answer about one address. */
struct units_answer {
	struct symbol_frame frames[MAX_FRAMES];
	size_t nr_frames; /* 0: no unit holds the address */
	bool is_bare;	  /* the last function's name is not a demangled one */
};

/* end is the end of the module, as Dwfl counts. */
void units_init(struct units *units, Dwfl_Module *module, uint64_t end);
void units_fini(struct units *units);

/*
 * Frames innermost first, addr as Dwfl counts. The last one's function is NULL where a unit has
 * line numbers only.
 */
void units_resolve(
	struct units *units, struct names *names, uint64_t addr, struct units_answer *answer);

#endif
