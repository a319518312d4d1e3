/* SPDX-License-Identifier: MIT */
/*
 * object.h - one ELF file of the target, opened with elfutils.
 *
 * Each file has a Dwfl of its own: modules of a target may overlap in time or be loaded twice, so
 * the target's addresses cannot tell them apart, and here all addresses are those in the file.
 * Separate debug files (build-id folders, .gnu_debuglink, .gnu_debugdata) are found by elfutils.
 */
#ifndef LW_SNAPSHOT_OBJECT_H
#define LW_SNAPSHOT_OBJECT_H

#include "snapshot/symbols/callee.h"
#include "snapshot/symbols/names.h"
#include "snapshot/symbols/symdata.h"
#include "snapshot/symbols/symtab.h"
#include "snapshot/symbols/units.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where to look for files; the same for all objects, and must not move while there are any. */
struct search {
	const char *root; /* before all paths; "" for none */
	char *debug_path; /* folders, as dwfl_standard_find_debuginfo wants them */
	Dwfl_Callbacks callbacks;
	bool (*skips_debug)(const char *path); /* NULL: none */
};

enum object_state {
	OBJECT_NEW, /* nobody asked yet */
	OBJECT_OPEN,
	OBJECT_UNKNOWN, /* missing, not usable, or another file than the one that ran; stays so */
};

struct object {
	const struct search *search;
	char *path;
	uint8_t *build_id; /* NULL: any will do */
	size_t build_id_bytes;
	enum object_state state;
	Dwfl *dwfl;
	Dwfl_Module *module;
	uint64_t bias; /* what Dwfl adds to the addresses in the file */
	struct symtab symtab;
	struct symdata symdata;
	struct units units;
	struct callees callees;
};

/* False: out of memory. The root must outlive the search. */
bool search_init(struct search *search, const char *root);
void search_fini(struct search *search);

/* NULL: out of memory. Opens nothing. */
struct object *object_new(const struct search *search, const char *path, const uint8_t *build_id,
	size_t build_id_bytes);
void object_free(struct object *object);

bool object_is(const struct object *object, const char *path, const uint8_t *build_id,
	size_t build_id_bytes);

/* Opens at the first call. False: nothing can be known about this object. */
bool object_open(struct object *object);

#endif
