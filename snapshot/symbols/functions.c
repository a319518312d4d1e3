/* SPDX-License-Identifier: MIT */
/*
 * functions.c - walks the tree of debugging entries, each part of it once.
 *
 * dwarf_getscopes() walks the unit from its beginning for every address, which costs milliseconds
 * in a unit full of templates. Here the first question about a unit lists the ranges of its
 * functions, without looking into them (compilers write where the next sibling is), and the first
 * question about a function lists the inlined calls in it. Functions inside functions and types
 * are rare, and a full walk is dear: it is made only when the short list does not have the address.
 *
 * The tree is as the file has it. libdw keeps every step inside the unit and going forward, so the
 * walk ends; MAX_NESTING bounds the recursion.
 */
#include "snapshot/symbols/functions.h"

#include <dwarf.h>
#include <stdlib.h>

enum { FIRST_ITEMS = 16 };

void functions_add_ranges(struct ranges *ranges, Dwarf_Die *die, uint32_t ref, uint64_t end)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	/* Linkers move discarded code to 0, 1 or the far end of the address space. */
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0)
		if (lo > 1 && lo < hi && hi <= end)
			ranges_add(ranges, lo, hi, ref, 0);
}

/* Room for one more item, or NULL. */
static void *grown(void *items, size_t nr, size_t *max, size_t item_bytes)
{
	size_t wanted = *max ? *max * 2 : FIRST_ITEMS;
	void *more;

	if (nr < *max)
		return items;
	if (nr >= NOT_INLINED)
		return NULL;
	more = reallocarray(items, wanted, item_bytes);
	if (more)
		*max = wanted;
	return more;
}

static void add_function(struct functions *functions, Dwarf_Die *die, uint64_t end)
{
	size_t nr_before = functions->ranges.nr;
	struct function *v;

	functions_add_ranges(&functions->ranges, die, (uint32_t)functions->nr, end);
	if (functions->ranges.nr == nr_before)
		return;
	v = grown(functions->v, functions->nr, &functions->max, sizeof(*v));
	if (!v) {
		functions->ranges.nr = nr_before;
		return;
	}
	functions->v = v;
	functions->v[functions->nr++] = (struct function){.die = *die};
}

static bool is_worth_entering(int tag, enum functions_depth depth)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return depth == FUNCTIONS_ALL;
	default:
		return false;
	}
}

static void list_functions(struct functions *functions, Dwarf_Die *parent,
	enum functions_depth depth, unsigned nesting, uint64_t end)
{
	Dwarf_Die die;

	if (nesting == MAX_NESTING || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_function(functions, &die, end);
		if (is_worth_entering(tag, depth))
			list_functions(functions, &die, depth, nesting + 1, end);
	} while (!dwarf_siblingof(&die, &die));
}

static void read_functions(
	struct functions *functions, Dwarf_Die *unit, enum functions_depth depth, uint64_t end)
{
	functions_fini(functions);
	functions->depth = depth;
	list_functions(functions, unit, depth, 0, end);
	ranges_sort(&functions->ranges);
}

struct function *functions_find(
	struct functions *functions, Dwarf_Die *unit, uint64_t addr, uint64_t end)
{
	const struct range *range;

	if (functions->depth == FUNCTIONS_NONE)
		read_functions(functions, unit, FUNCTIONS_OUTER, end);
	range = ranges_find(&functions->ranges, addr);
	if (!range && functions->depth == FUNCTIONS_OUTER) {
		read_functions(functions, unit, FUNCTIONS_ALL, end);
		range = ranges_find(&functions->ranges, addr);
	}
	return range ? &functions->v[range->ref] : NULL;
}

void functions_fini(struct functions *functions)
{
	for (size_t i = 0; i < functions->nr; i++) {
		free(functions->v[i].inlined);
		ranges_fini(&functions->v[i].ranges);
	}
	free(functions->v);
	ranges_fini(&functions->ranges);
	*functions = (struct functions){0};
}

/* The index of the new one, or that of its caller if there is no memory for it. */
static uint32_t add_inlined(
	struct function *function, Dwarf_Die *die, uint32_t caller, uint64_t end)
{
	uint32_t index = (uint32_t)function->nr_inlined;
	struct inlined *inlined = grown(
		function->inlined, function->nr_inlined, &function->max_inlined, sizeof(*inlined));

	if (!inlined)
		return caller;
	function->inlined = inlined;
	function->inlined[function->nr_inlined++] = (struct inlined){.die = *die, .caller = caller};
	functions_add_ranges(&function->ranges, die, index, end);
	return index;
}

static void list_inlined(struct function *function, Dwarf_Die *parent, uint32_t caller,
	unsigned nesting, uint64_t end)
{
	Dwarf_Die die;

	if (nesting == MAX_NESTING || dwarf_child(parent, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
			list_inlined(function, &die, add_inlined(function, &die, caller, end),
				nesting + 1, end);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			list_inlined(function, &die, caller, nesting + 1, end);
			break;
		default:
			break;
		}
	} while (!dwarf_siblingof(&die, &die));
}

/* Callers are listed before what is inlined in them, so of all that hold addr the last is it. */
uint32_t function_innermost(struct function *function, uint64_t addr, uint64_t end)
{
	uint32_t innermost = NOT_INLINED;

	if (!function->is_read) {
		function->is_read = true;
		list_inlined(function, &function->die, NOT_INLINED, 0, end);
	}
	for (size_t i = 0; i < function->ranges.nr; i++) {
		const struct range *range = &function->ranges.v[i];

		if (addr >= range->lo && addr < range->hi &&
			(innermost == NOT_INLINED || range->ref > innermost))
			innermost = range->ref;
	}
	return innermost;
}
