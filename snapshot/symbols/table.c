/* SPDX-License-Identifier: MIT */
/*
 * table.c - open addressing with linear probing, at most half full.
 *
 * Keys are addresses, whose low and high bits say little: both numbers go through a multiplicative
 * mix, so that neighbours spread. glib or a C++ map would do the same at the price of a dependency.
 */
#include "snapshot/symbols/table.h"

#include <stdlib.h>

enum { FIRST_ENTRIES = 256 };

static size_t hash(uint64_t a, uint64_t b)
{
	uint64_t mixed = (a ^ (b >> 32 | b << 32)) * UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 29 ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
	return (size_t)(mixed ^ mixed >> 32);
}

/* The entry of the key, or the free one where it belongs. There is always a free one. */
static struct table_entry *locate(struct table_entry *entries, size_t max, uint64_t a, uint64_t b)
{
	size_t i = hash(a, b) & (max - 1);

	while (entries[i].value && (entries[i].a != a || entries[i].b != b))
		i = (i + 1) & (max - 1);
	return &entries[i];
}

static bool grow(struct table *table)
{
	size_t max = table->max_entries ? table->max_entries * 2 : FIRST_ENTRIES;
	struct table_entry *entries = calloc(max, sizeof(*entries));

	if (!entries)
		return false;
	for (size_t i = 0; i < table->max_entries; i++) {
		struct table_entry *old = &table->entries[i];

		if (old->value)
			*locate(entries, max, old->a, old->b) = *old;
	}
	free(table->entries);
	table->entries = entries;
	table->max_entries = max;
	return true;
}

void *table_find(const struct table *table, uint64_t a, uint64_t b)
{
	if (!table->nr_entries)
		return NULL;
	return locate(table->entries, table->max_entries, a, b)->value;
}

bool table_set(struct table *table, uint64_t a, uint64_t b, void *value)
{
	struct table_entry *entry;

	if (table->nr_entries * 2 >= table->max_entries && !grow(table))
		return false;
	entry = locate(table->entries, table->max_entries, a, b);
	table->nr_entries += !entry->value;
	*entry = (struct table_entry){.a = a, .b = b, .value = value};
	return true;
}

void table_fini(struct table *table, void (*free_value)(void *value))
{
	for (size_t i = 0; free_value && i < table->max_entries; i++)
		if (table->entries[i].value)
			free_value(table->entries[i].value);
	free(table->entries);
	*table = (struct table){0};
}
