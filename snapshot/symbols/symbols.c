/* SPDX-License-Identifier: MIT */
/*
 * symbols.c - modules, objects and the cache of answers.
 *
 * A module is a number of the target's; an object is a file. A program that loads and unloads a
 * plugin a thousand times has a thousand modules and one object. Answers are kept by object and
 * address for good: a report asks for the same frames over and over, and hands the strings around.
 *
 * Debug information goes before the symbol table, for it knows inlined calls and lines. Of two
 * names for the same function the better one wins: see outer_name().
 */
#include "snapshot/symbols/symbols.h"

#include "snapshot/symbols/names.h"
#include "snapshot/symbols/network.h"
#include "snapshot/symbols/object.h"
#include "snapshot/symbols/table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_OBJECTS = 16 };

struct answer {
	size_t nr_frames;
	struct symbol_frame frames[];
};

struct symbols {
	char *root;
	struct search search;
	struct names names;
	struct table modules; /* (id, 0) -> struct object */
	struct table answers; /* (object, address) -> struct answer */
	struct table callees; /* (object, return address) -> name, or no_name */
	struct object **objects;
	size_t nr_objects, max_objects;
	struct units_answer scratch;
};

static const struct symbol_frame unknown;
static char no_name[1]; /* remembered in place of NULL */

struct symbols *symbols_new(const char *root_prefix)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	network_init();
	symbols->root = strdup(root_prefix);
	if (!symbols->root || !search_init(&symbols->search, symbols->root)) {
		symbols_free(symbols);
		return NULL;
	}
	return symbols;
}

void symbols_skip_debug(struct symbols *symbols, bool (*is_known)(const char *path))
{
	symbols->search.skips_debug = is_known;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	table_fini(&symbols->callees, NULL);
	table_fini(&symbols->answers, free);
	table_fini(&symbols->modules, NULL);
	names_fini(&symbols->names);
	for (size_t i = 0; i < symbols->nr_objects; i++)
		object_free(symbols->objects[i]);
	free(symbols->objects);
	search_fini(&symbols->search);
	free(symbols->root);
	free(symbols);
}

static bool add_object(struct symbols *symbols, struct object *object)
{
	if (symbols->nr_objects == symbols->max_objects) {
		size_t max = symbols->max_objects ? symbols->max_objects * 2 : FIRST_OBJECTS;
		struct object **objects = reallocarray(symbols->objects, max, sizeof(*objects));

		if (!objects)
			return false;
		symbols->objects = objects;
		symbols->max_objects = max;
	}
	symbols->objects[symbols->nr_objects++] = object;
	return true;
}

static struct object *intern_object(
	struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_bytes)
{
	struct object *object;

	for (size_t i = 0; i < symbols->nr_objects; i++)
		if (object_is(symbols->objects[i], path, build_id, build_id_bytes))
			return symbols->objects[i];
	object = object_new(&symbols->search, path, build_id, build_id_bytes);
	if (object && !add_object(symbols, object)) {
		object_free(object);
		return NULL;
	}
	return object;
}

void symbols_module(struct symbols *symbols, unsigned id, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	struct object *object;

	object = intern_object(symbols, path, build_id, build_id ? build_id_bytes : 0);
	if (object)
		table_set(&symbols->modules, id, 0, object);
}

static struct object *open_module(struct symbols *symbols, unsigned module)
{
	struct object *object = table_find(&symbols->modules, module, 0);

	return object && object_open(object) ? object : NULL;
}

/*
 * The name of the function that stands in the file. Debug information has it without the suffix of
 * a clone, so it goes before the symbol table's but in two cases. A bare identifier (clang
 * -gline-tables-only) gives way to the mangled symbol, which has scope and parameters; and a
 * private C name to its public alias (`__strdup`, `__pthread_create_2_1`), which is the one that
 * people call and that they see where the debug package is not installed.
 */
static const char *outer_name(
	struct symbols *symbols, struct object *object, uint64_t addr, const char *known)
{
	const char *name = names_tidy(&symbols->names, symtab_name_at(&object->symtab, addr));

	if (!known || !name)
		return known ? known : name;
	if (strchr(name, '('))
		return memmem(name, strlen(name), known, strcspn(known, "<(")) ? name : known;
	return known[0] == '_' && name[0] != '_' ? name : known;
}

static struct answer *look_up(struct symbols *symbols, struct object *object, uint64_t addr)
{
	struct units_answer *found = &symbols->scratch;
	struct symbol_frame *outer;
	struct answer *answer;

	units_resolve(&object->units, &symbols->names, addr, found);
	if (!found->nr_frames)
		found->frames[found->nr_frames++] = (struct symbol_frame){0};
	outer = &found->frames[found->nr_frames - 1];
	if (!outer->function || found->is_bare)
		outer->function = outer_name(symbols, object, addr, outer->function);
	answer = malloc(sizeof(*answer) + found->nr_frames * sizeof(*found->frames));
	if (!answer)
		return NULL;
	answer->nr_frames = found->nr_frames;
	memcpy(answer->frames, found->frames, found->nr_frames * sizeof(*found->frames));
	return answer;
}

const struct symbol_frame *symbols_resolve(
	struct symbols *symbols, unsigned module, uint64_t offset, bool exact_pc, size_t *nr_frames)
{
	struct object *object = open_module(symbols, module);
	uint64_t addr = exact_pc ? offset : offset - 1;
	struct answer *answer;

	*nr_frames = 1;
	if (!object)
		return &unknown;
	answer = table_find(&symbols->answers, (uintptr_t)object, addr);
	if (!answer) {
		answer = look_up(symbols, object, addr + object->bias);
		if (!answer || !table_set(&symbols->answers, (uintptr_t)object, addr, answer)) {
			free(answer);
			return &unknown;
		}
	}
	*nr_frames = answer->nr_frames;
	return answer->frames;
}

const char *symbols_callee(struct symbols *symbols, unsigned module, uint64_t offset)
{
	struct object *object = open_module(symbols, module);
	const char *name;
	char *known;

	if (!object)
		return NULL;
	known = table_find(&symbols->callees, (uintptr_t)object, offset);
	if (known)
		return known == no_name ? NULL : known;
	name = names_tidy(&symbols->names, callees_name(&object->callees, &object->symtab, offset));
	table_set(&symbols->callees, (uintptr_t)object, offset,
		name ? (char *)(uintptr_t)name : no_name);
	return name;
}

const char *symbols_variable(struct symbols *symbols, unsigned module, uint64_t offset, uint64_t *into)
{
	struct object *object = open_module(symbols, module);

	return object ? names_tidy(&symbols->names,
				symdata_name_at(&object->symdata, offset + object->bias, into))
		      : NULL;
}
