/* SPDX-License-Identifier: MIT */
/* symdata.h - the variables in an object's symbol tables, by address: globals, statics, vtables. */
#ifndef LW_SNAPSHOT_SYMDATA_H
#define LW_SNAPSHOT_SYMDATA_H

#include "snapshot/symbols/ranges.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

struct symdata {
	Dwfl_Module *module;
	uint64_t end;	      /* nothing lies beyond */
	bool is_read;	      /* the tables are read at the first question */
	struct ranges ranges; /* ref: index of the symbol in the module */
};

void symdata_init(struct symdata *data, Dwfl_Module *module, uint64_t end);
void symdata_fini(struct symdata *data);

/* The raw name of the variable an address is inside of, and how far; addr is Dwfl's. NULL: none. */
const char *symdata_name_at(struct symdata *data, uint64_t addr, uint64_t *into);

#endif
