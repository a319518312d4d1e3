/* SPDX-License-Identifier: MIT */
/*
 * names.h - raw symbol names to what a person reads.
 *
 * C++ names come out as c++filt prints them, with parameters; the version of a symbol
 * (`@@GLIBC_2.2`) and glibc's `__GI_` are cut off; everything else, such as `work.isra.0` or a Rust
 * v0 name, stays as it is.
 */
#ifndef LW_SNAPSHOT_NAMES_H
#define LW_SNAPSHOT_NAMES_H

#include "snapshot/symbols/table.h"

struct names {
	struct table by_raw; /* address of the raw name -> tidy name, ours to free */
};

/*
 * The tidy form of raw, which must stay where it is until names_fini(): the answer is remembered by
 * its address. NULL for NULL and for an empty name.
 */
const char *names_tidy(struct names *names, const char *raw);

void names_fini(struct names *names);

#endif
