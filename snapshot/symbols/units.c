/* SPDX-License-Identifier: MIT */
/*
 * units.c - from an address to frames.
 *
 * The ranges come from the units themselves, not from .debug_aranges, which clang does not write.
 * Line tables are libdw's: read once a unit, then a binary search. A unit of split debug
 * information has its functions in another file (.dwo), which is opened when the unit is first hit.
 *
 * The line of the innermost frame is that of the address; each outer frame has the line of the call
 * that was inlined, which the entry of the inlined call carries.
 */
#include "snapshot/symbols/units.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	Dwarf_Die die;	    /* has ranges and line table */
	Dwarf_Die tree;	    /* has the functions: die itself, or the one in the .dwo file */
	bool is_read;	    /* tree and files are filled */
	Dwarf_Files *files; /* what the numbers of call sites mean; NULL: none */
	size_t nr_files;
	struct functions functions;
};

enum { FIRST_UNITS = 64 };

void units_init(struct units *units, Dwfl_Module *module, uint64_t end)
{
	*units = (struct units){.module = module, .end = end};
}

void units_fini(struct units *units)
{
	for (size_t i = 0; i < units->nr; i++)
		functions_fini(&units->v[i].functions);
	free(units->v);
	ranges_fini(&units->ranges);
	units->v = NULL;
	units->nr = units->max = 0;
}

static void add_unit(struct units *units, const Dwarf_Die *die)
{
	size_t nr_before = units->ranges.nr, max = units->max ? units->max * 2 : FIRST_UNITS;
	Dwarf_Die copy = *die;

	functions_add_ranges(&units->ranges, &copy, (uint32_t)units->nr, units->end);
	if (units->ranges.nr == nr_before)
		return;
	if (units->nr == units->max) {
		struct unit *v = reallocarray(units->v, max, sizeof(*v));

		if (!v) {
			units->ranges.nr = nr_before;
			return;
		}
		units->v = v;
		units->max = max;
	}
	units->v[units->nr++] = (struct unit){.die = *die};
}

static void read_units(struct units *units)
{
	Dwarf_Addr bias = 0;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	Dwarf *dwarf;

	if (units->is_read)
		return;
	units->is_read = true;
	dwarf = dwfl_module_getdwarf(units->module, &bias);
	if (!dwarf)
		return;
	units->bias = bias;
	units->end -= bias;
	while (!dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL))
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			add_unit(units, &die);
	ranges_sort(&units->ranges);
}

static void read_unit(struct unit *unit)
{
	Dwarf_Die split;
	uint8_t type;

	if (unit->is_read)
		return;
	unit->is_read = true;
	unit->tree = unit->die;
	if (!dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) &&
		type == DW_UT_skeleton && split.addr)
		unit->tree = split;
	if (dwarf_getsrcfiles(&unit->tree, &unit->files, &unit->nr_files))
		unit->files = NULL;
}

/* The name for people, and whether it is a bare one: the symbol table may have a better one. */
static const char *function_name(struct names *names, Dwarf_Die *die, bool *is_bare)
{
	Dwarf_Attribute attribute;
	const char *linkage = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
		dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		linkage = dwarf_formstring(&attribute);
	*is_bare = !linkage || strncmp(linkage, "_Z", 2);
	return names_tidy(names, linkage ? linkage : dwarf_diename(die));
}

static void fill_line(struct symbol_frame *frame, struct unit *unit, uint64_t addr)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, addr);
	int number;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (!dwarf_lineno(line, &number) && number > 0)
		frame->line = (unsigned)number;
	if (!dwarf_linecol(line, &number) && number > 0)
		frame->column = (unsigned)number;
}

static unsigned number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &number) || number > UINT32_MAX)
		return 0;
	return (unsigned)number;
}

/* The caller's frame gets the place of the call that was inlined. */
static void fill_call(struct symbol_frame *frame, const struct unit *unit, Dwarf_Die *inlined)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file;

	frame->line = number_of(inlined, DW_AT_call_line);
	frame->column = number_of(inlined, DW_AT_call_column);
	if (unit->files &&
		!dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) &&
		file < unit->nr_files)
		frame->file = dwarf_filesrc(unit->files, file, NULL, NULL);
}

/* The frame that addr is in, and those it was inlined into. */
static void fill_frames(struct units_answer *answer, struct names *names, struct unit *unit,
	struct function *function, uint32_t innermost)
{
	struct symbol_frame *frame = answer->frames;
	uint32_t at = innermost;

	for (; at != NOT_INLINED && answer->nr_frames < MAX_FRAMES;
		at = function->inlined[at].caller) {
		Dwarf_Die *die = &function->inlined[at].die;

		frame->function = function_name(names, die, &answer->is_bare);
		frame->inlined = true;
		frame = &answer->frames[answer->nr_frames++];
		*frame = (struct symbol_frame){0};
		fill_call(frame, unit, die);
	}
	frame->function = function_name(names, &function->die, &answer->is_bare);
}

void units_resolve(
	struct units *units, struct names *names, uint64_t addr, struct units_answer *answer)
{
	const struct range *range;
	struct function *function;
	struct unit *unit;

	answer->nr_frames = 0;
	answer->is_bare = false;
	read_units(units);
	addr -= units->bias;
	range = ranges_find(&units->ranges, addr);
	if (!range)
		return;
	unit = &units->v[range->ref];
	read_unit(unit);
	answer->frames[answer->nr_frames++] = (struct symbol_frame){0};
	fill_line(&answer->frames[0], unit, addr);
	function = functions_find(&unit->functions, &unit->tree, addr, units->end);
	if (function)
		fill_frames(answer, names, unit, function,
			function_innermost(function, addr, units->end));
}
