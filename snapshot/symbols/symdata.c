/* SPDX-License-Identifier: MIT */
/*
 * symdata.c - an index over the data symbols that dwfl_module_getsym_info() lists; see symdata.h.
 * Of several at one address an exported name goes before a local one: `environ` and `__environ`.
 */
#include "snapshot/symbols/symdata.h"

#include <gelf.h>
#include <string.h>

void symdata_init(struct symdata *data, Dwfl_Module *module, uint64_t end)
{
	*data = (struct symdata){.module = module, .end = end};
}

void symdata_fini(struct symdata *data)
{
	ranges_fini(&data->ranges);
	data->is_read = false;
}

static void add_symbol(struct symdata *data, int index)
{
	GElf_Sym symbol;
	GElf_Addr addr;
	const char *name = dwfl_module_getsym_info(data->module, index, &symbol, &addr, NULL, NULL, NULL);

	if (!name || !*name || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS ||
		GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || !addr || !symbol.st_size ||
		addr >= data->end || symbol.st_size > data->end - addr)
		return;
	ranges_add(&data->ranges, addr, addr + symbol.st_size, (uint32_t)index,
		(GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? 0 : 2) + (*name != '_'));
}

static void read_tables(struct symdata *data)
{
	int nr_symbols;

	if (data->is_read)
		return;
	data->is_read = true;
	nr_symbols = dwfl_module_getsymtab(data->module);
	for (int i = 1; i < nr_symbols; i++)
		add_symbol(data, i);
	ranges_sort(&data->ranges);
}

const char *symdata_name_at(struct symdata *data, uint64_t addr, uint64_t *into)
{
	const struct range *range;
	GElf_Sym symbol;
	GElf_Addr at;

	read_tables(data);
	range = ranges_find(&data->ranges, addr);
	if (!range)
		return NULL;
	*into = addr - range->lo;
	return dwfl_module_getsym_info(data->module, (int)range->ref, &symbol, &at, NULL, NULL, NULL);
}
