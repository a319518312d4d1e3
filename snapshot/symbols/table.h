/* SPDX-License-Identifier: MIT */
/*
 * table.h - a hash table from two numbers to a pointer.
 *
 * Serves all caches of this folder: (object, address) to frames, a name's address to its tidy
 * form. Entries are never removed. A zeroed table is a valid, empty one.
 */
#ifndef LW_SNAPSHOT_TABLE_H
#define LW_SNAPSHOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_entry {
	uint64_t a, b; /* the key */
	void *value;   /* NULL: free entry */
};

struct table {
	struct table_entry *entries;
	size_t nr_entries;
	size_t max_entries; /* a power of two, or 0 */
};

/* NULL when the key is not in. */
void *table_find(const struct table *table, uint64_t a, uint64_t b);

/* Replaces the value of a key that is in. value must not be NULL. False: out of memory. */
bool table_set(struct table *table, uint64_t a, uint64_t b, void *value);

/* Empties the table; each value goes through free_value unless that is NULL. */
void table_fini(struct table *table, void (*free_value)(void *value));

#endif
