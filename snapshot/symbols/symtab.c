/* SPDX-License-Identifier: MIT */
/*
 * symtab.c - an index over what dwfl_module_getsym_info() lists.
 *
 * elfutils merges .symtab or .dynsym of the file, of its debug file and of .gnu_debugdata. Its own
 * look-up by address takes the preceding symbol where none fits, which puts a stripped library's
 * private functions under whatever exported name comes before; hence this index.
 *
 * Where several symbols begin at one address, what is exported goes before what is local, then the
 * name with fewer leading underscores, then global before weak: in libc, `strdup` is a weak alias
 * of the global `__strdup`, and nobody calls the latter.
 */
#include "snapshot/symbols/symtab.h"

#include <gelf.h>
#include <string.h>

enum {
	MAX_UNDERSCORES = 7,
	RANK_GLOBAL = 1,
	RANK_UNDERSCORE = 2,
	RANK_EXPORTED = (MAX_UNDERSCORES + 1) * RANK_UNDERSCORE,
};

void symtab_init(struct symtab *symtab, Dwfl_Module *module, uint64_t end)
{
	*symtab = (struct symtab){.module = module, .end = end};
}

void symtab_fini(struct symtab *symtab)
{
	ranges_fini(&symtab->ranges);
	symtab->is_read = false;
}

/* The section of the symbol, with Dwfl's addresses. False: there is none, or it holds no code. */
static bool code_section(Elf *elf, GElf_Word index, Dwarf_Addr bias, GElf_Shdr *header)
{
	Elf_Scn *section = elf && index != SHN_UNDEF ? elf_getscn(elf, index) : NULL;

	if (!section || !gelf_getshdr(section, header) || !(header->sh_flags & SHF_EXECINSTR))
		return false;
	header->sh_addr += bias;
	return true;
}

static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
	size_t underscores = strspn(name, "_");
	uint32_t rank = 0;

	if (underscores < MAX_UNDERSCORES)
		rank = (MAX_UNDERSCORES - (uint32_t)underscores) * RANK_UNDERSCORE;
	if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL)
		rank += RANK_EXPORTED + RANK_GLOBAL;
	else if (GELF_ST_BIND(symbol->st_info) != STB_LOCAL)
		rank += RANK_EXPORTED;
	return rank;
}

static void add_symbol(struct symtab *symtab, int index)
{
	GElf_Sym symbol;
	GElf_Addr addr;
	GElf_Word section = SHN_UNDEF;
	GElf_Shdr header;
	Elf *elf;
	Dwarf_Addr bias;
	const char *name = dwfl_module_getsym_info(
		symtab->module, index, &symbol, &addr, &section, &elf, &bias);
	int type;

	if (!name || !*name || !strncmp(name, ".L", 2) || symbol.st_shndx == SHN_UNDEF ||
		symbol.st_shndx == SHN_ABS)
		return;
	type = GELF_ST_TYPE(symbol.st_info);
	if (type == STT_NOTYPE && !code_section(elf, section, bias, &header))
		return;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return;
	if (!addr || addr >= symtab->end || symbol.st_size > symtab->end - addr)
		return;
	ranges_add(&symtab->ranges, addr, addr + symbol.st_size, (uint32_t)index,
		rank_of(&symbol, name));
}

static void read_tables(struct symtab *symtab)
{
	int nr_symbols;

	if (symtab->is_read)
		return;
	symtab->is_read = true;
	nr_symbols = dwfl_module_getsymtab(symtab->module);
	for (int i = 1; i < nr_symbols; i++)
		add_symbol(symtab, i);
	ranges_sort(&symtab->ranges);
}

static const char *name_of(const struct symtab *symtab, const struct range *range)
{
	GElf_Sym symbol;
	GElf_Addr addr;

	return dwfl_module_getsym_info(
		symtab->module, (int)range->ref, &symbol, &addr, NULL, NULL, NULL);
}

/*
 * Assembler functions often have no size. Such a symbol counts where nothing with a size fits, up
 * to the next symbol or the end of its section, and only if no alias of it knows the size.
 */
static const char *unsized_at(const struct symtab *symtab, uint64_t addr)
{
	const struct range *range = ranges_below(&symtab->ranges, addr), *alias;
	GElf_Sym symbol;
	GElf_Addr value;
	GElf_Word index = SHN_UNDEF;
	GElf_Shdr header;
	Elf *elf;
	Dwarf_Addr bias;

	if (!range)
		return NULL;
	for (alias = range; alias->lo == range->lo; alias--) {
		if (alias->hi > alias->lo)
			return NULL;
		if (alias == symtab->ranges.v)
			break;
	}
	if (!dwfl_module_getsym_info(
		    symtab->module, (int)range->ref, &symbol, &value, &index, &elf, &bias) ||
		!code_section(elf, index, bias, &header) || addr < header.sh_addr ||
		addr - header.sh_addr >= header.sh_size)
		return NULL;
	return name_of(symtab, range);
}

const char *symtab_name_at(struct symtab *symtab, uint64_t addr)
{
	const struct range *range;

	read_tables(symtab);
	range = ranges_find(&symtab->ranges, addr);
	return range ? name_of(symtab, range) : unsized_at(symtab, addr);
}

const char *symtab_name_of(struct symtab *symtab, uint64_t addr)
{
	const struct range *range;

	read_tables(symtab);
	range = ranges_below(&symtab->ranges, addr);
	return range && range->lo == addr ? name_of(symtab, range) : NULL;
}
