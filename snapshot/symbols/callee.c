/* SPDX-License-Identifier: MIT */
/*
 * callee.c - from a call's target to a name.
 *
 * A direct call leads to a function of the module, which the symbol table may know, or to a PLT
 * stub; a stub, or a call through the GOT, leads to a GOT entry, and the relocation that fills that
 * entry has the symbol. The relocations of GOT entries are sorted once: a large C++ library has
 * hundreds of thousands of others.
 */
#include "snapshot/symbols/callee.h"

#include <stdlib.h>

struct slot {
	uint64_t addr;
	uint64_t resolver; /* SLOT_IFUNC: the function that chooses; else 0 */
	uint32_t symbol;   /* SLOT_SYMBOL: index in DT_SYMTAB */
};

enum { FIRST_SLOTS = 64 };

void callees_init(struct callees *callees, Elf *elf, uint64_t bias)
{
	*callees = (struct callees){.elf = elf, .bias = bias};
}

void callees_fini(struct callees *callees)
{
	free(callees->slots);
	*callees = (struct callees){0};
}

/* False: not one of the loader's GOT entries. */
static bool slot_of(const struct image *image, uint64_t relocation, struct slot *slot)
{
	Elf64_Rela rela;
	enum slot_kind kind;

	if (!image_read(image, relocation, &rela, sizeof(rela)))
		return false;
	kind = callee_slot_kind((uint32_t)ELF64_R_TYPE(rela.r_info));
	*slot = (struct slot){
		.addr = rela.r_offset,
		.resolver = kind == SLOT_IFUNC ? (uint64_t)rela.r_addend : 0,
		.symbol = (uint32_t)ELF64_R_SYM(rela.r_info),
	};
	return kind != SLOT_OTHER;
}

static bool add_slot(struct callees *callees, const struct slot *slot)
{
	if (callees->nr_slots == callees->max_slots) {
		size_t max = callees->max_slots ? callees->max_slots * 2 : FIRST_SLOTS;
		struct slot *slots = reallocarray(callees->slots, max, sizeof(*slots));

		if (!slots)
			return false;
		callees->slots = slots;
		callees->max_slots = max;
	}
	callees->slots[callees->nr_slots++] = *slot;
	return true;
}

static void add_slots(struct callees *callees, uint64_t relocations, uint64_t nr_bytes)
{
	struct slot slot;

	if (!image_at(&callees->image, relocations, nr_bytes))
		return;
	for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= nr_bytes; at += sizeof(Elf64_Rela))
		if (slot_of(&callees->image, relocations + at, &slot) && !add_slot(callees, &slot))
			return;
}

static int compare(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void read_slots(struct callees *callees)
{
	size_t nr_bytes;
	char *bytes;

	if (callees->is_read)
		return;
	callees->is_read = true;
	bytes = elf_rawfile(callees->elf, &nr_bytes);
	if (!bytes || nr_bytes < sizeof(Elf64_Ehdr))
		return;
	image_init(&callees->image, (const uint8_t *)bytes, nr_bytes);
	image_find_tables(&callees->image, &callees->tables);
	add_slots(callees, callees->tables.plt_rela, callees->tables.plt_rela_bytes);
	add_slots(callees, callees->tables.rela, callees->tables.rela_bytes);
	if (callees->nr_slots)
		qsort(callees->slots, callees->nr_slots, sizeof(*callees->slots), compare);
}

static const char *slot_name(
	const struct callees *callees, struct symtab *symtab, const struct slot *slot)
{
	if (slot->resolver)
		return symtab_name_of(symtab, slot->resolver + callees->bias);
	return image_symbol_name(&callees->image, &callees->tables, slot->symbol);
}

static const char *target_name(
	const struct callees *callees, struct symtab *symtab, const struct target *target)
{
	const struct slot *found = NULL;
	struct slot slot = {.addr = target->value};

	if (target->kind == TARGET_SLOT && callees->nr_slots)
		found = bsearch(&slot, callees->slots, callees->nr_slots, sizeof(slot), compare);
	else if (target->kind == TARGET_PLT &&
		 target->value < callees->tables.plt_rela_bytes / sizeof(Elf64_Rela) &&
		 slot_of(&callees->image,
			 callees->tables.plt_rela + target->value * sizeof(Elf64_Rela), &slot))
		found = &slot;
	return found ? slot_name(callees, symtab, found) : NULL;
}

const char *callees_name(struct callees *callees, struct symtab *symtab, uint64_t return_addr)
{
	struct target target;

	read_slots(callees);
	target = callee_of_call(&callees->image, return_addr);
	if (target.kind == TARGET_CODE) {
		const char *name = symtab_name_of(symtab, target.value + callees->bias);

		if (name)
			return name;
		target = callee_of_stub(&callees->image, target.value);
	}
	return target_name(callees, symtab, &target);
}
