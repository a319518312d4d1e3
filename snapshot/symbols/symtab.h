/* SPDX-License-Identifier: MIT */
/*
 * symtab.h - the functions in an object's symbol tables, by address.
 *
 * The only source of names where there is no debug information. It never guesses: an address
 * belongs to a symbol when it is inside of it, not when the symbol merely comes before.
 */
#ifndef LW_SNAPSHOT_SYMTAB_H
#define LW_SNAPSHOT_SYMTAB_H

#include "snapshot/symbols/ranges.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

struct symtab {
	Dwfl_Module *module;
	uint64_t end;	      /* no function lies beyond */
	bool is_read;	      /* the tables are read at the first question */
	struct ranges ranges; /* ref: index of the symbol in the module */
};

void symtab_init(struct symtab *symtab, Dwfl_Module *module, uint64_t end);
void symtab_fini(struct symtab *symtab);

/* Raw names as they stand in the file, where they stay. addr is Dwfl's. NULL: no such function. */
const char *symtab_name_at(struct symtab *symtab, uint64_t addr); /* any address inside */
const char *symtab_name_of(struct symtab *symtab, uint64_t addr); /* its first address */

#endif
