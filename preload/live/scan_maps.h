/* SPDX-License-Identifier: MIT */
/*
 * scan_maps.h - the address space of the scanner: what may be read, and which of it belongs to whom.
 *
 * Read from /proc/self/maps by the scanner about its own copy. Also says which pages of a range
 * are worth reading: those that exist. A page never touched holds no pointer, and reading it would
 * cost memory (an anonymous one), a disk access (a file), or the scanner's life (past the end of a file).
 */
#ifndef LW_LIVE_SCAN_MAPS_H
#define LW_LIVE_SCAN_MAPS_H

#include "preload/base/base.h"

enum {
	LW_MAP_READ = 1 << 0,
	LW_MAP_WRITE = 1 << 1,
	LW_MAP_SHARED = 1 << 2,
	LW_MAP_FILE = 1 << 3,	/* has a file, be it an unlinked one */
	LW_MAP_DEVICE = 1 << 4, /* memory of a device: reading it may do something */
	LW_MAP_BRK = 1 << 5,	/* [heap] */
	LW_MAP_MAIN_STACK = 1 << 6,
	LW_MAP_OWN = 1 << 7,	/* named as one of ours */
	LW_MAP_SPECIAL = 1 << 8, /* vdso, vvar */
};

struct lw_map {
	uintptr_t start, end;
	uint32_t flags;
};

/* Private memory that was never a file's: all of it may be read without asking which pages exist. */
LW_INLINE bool lw_map_is_plain(const struct lw_map *map)
{
	return (map->flags & (LW_MAP_READ | LW_MAP_FILE | LW_MAP_SHARED)) == LW_MAP_READ;
}

struct lw_maps {
	struct lw_map *maps; /* by address */
	size_t nr, max;
	char *text;  /* room of the reader: with maps the only mappings of the scanner that stand in its list */
	int pagemap; /* descriptor, -1 none */
};

enum { LW_MAPS_TEXT_BYTES = 65536, LW_MAPS_MAX = 1 << 20 };

/* Before anything else the scanner maps. False: /proc cannot be read, or no memory. */
bool lw_maps_read(struct lw_maps *maps);

/* The map an address lies in, or the next above it; NULL past the last. */
const struct lw_map *lw_maps_at(const struct lw_maps *maps, uintptr_t address);

/* Calls visit for the readable stretches of [from, to) whose pages exist. */
typedef void lw_maps_visit_fn(void *context, uintptr_t from, uintptr_t to);
void lw_maps_visit(const struct lw_maps *maps, uintptr_t from, uintptr_t to, lw_maps_visit_fn *visit, void *context);

#endif
