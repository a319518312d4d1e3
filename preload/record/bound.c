/* SPDX-License-Identifier: MIT */
/*
 * bound.c - reading the relocations of the loaded objects; see bound.h.
 *
 * The list of objects is the debugger's (_r_debug): walking it takes no lock, so that a thread inside
 * dlopen() is never waited for. A slot that was not bound yet points into its own object.
 */
#include "preload/record/bound.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

static const char *const allocators[] = { "malloc", "calloc", "realloc", "memalign", "aligned_alloc",
	"posix_memalign", "reallocarray" };

struct object {
	const struct link_map *map;
	const ElfW(Sym) *symbols;
	const char *names;
	uintptr_t start, end; /* of the object in memory */
};

static bool is_allocator(const char *name)
{
	for (size_t i = 0; i < LW_ARRAY_LENGTH(allocators); i++) {
		if (!strcmp(name, allocators[i]))
			return true;
	}
	return false;
}

static bool is_in(const void *address, uintptr_t start, uintptr_t end)
{
	return (uintptr_t)address >= start && (uintptr_t)address < end;
}

/* The object that holds an address; false: none does. */
static bool find(const void *address, uintptr_t *start, uintptr_t *end)
{
	struct dl_find_object found;

	if (_dl_find_object((void *)(uintptr_t)address, &found))
		return false;
	*start = (uintptr_t)found.dlfo_map_start;
	*end = (uintptr_t)found.dlfo_map_end;
	return true;
}

static bool is_slot_foreign(const struct object *object, const ElfW(Rela) *rela, uintptr_t own, uintptr_t own_end)
{
	uint64_t type = ELF64_R_TYPE(rela->r_info);
	const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(rela->r_info)];
	const void *const *slot = (const void *const *)(object->map->l_addr + rela->r_offset);

	return (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
	       is_allocator(object->names + symbol->st_name) && *slot && !is_in(*slot, own, own_end) &&
	       !is_in(*slot, object->start, object->end);
}

static bool has_foreign_slot(const struct object *object, const ElfW(Rela) *relas, size_t bytes, uintptr_t own,
		uintptr_t own_end)
{
	for (size_t i = 0; relas && i < bytes / sizeof(*relas); i++) {
		if (is_slot_foreign(object, &relas[i], own, own_end))
			return true;
	}
	return false;
}

static bool is_object_foreign(const struct link_map *map, uintptr_t own, uintptr_t own_end)
{
	struct object object = { .map = map };
	const ElfW(Rela) *relas = NULL, *jumps = NULL;
	size_t relas_bytes = 0, jumps_bytes = 0;

	/* the kernel's own object is not relocated, and allocates nothing */
	if (!map->l_ld || !find(map->l_ld, &object.start, &object.end))
		return false;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const void *at = (const void *)entry->d_un.d_ptr;

		if (entry->d_tag == DT_SYMTAB)
			object.symbols = at;
		else if (entry->d_tag == DT_STRTAB)
			object.names = at;
		else if (entry->d_tag == DT_RELA)
			relas = at;
		else if (entry->d_tag == DT_JMPREL)
			jumps = at;
		else if (entry->d_tag == DT_RELASZ)
			relas_bytes = entry->d_un.d_val;
		else if (entry->d_tag == DT_PLTRELSZ)
			jumps_bytes = entry->d_un.d_val;
	}
	if (!is_in(object.symbols, object.start, object.end) || !is_in(object.names, object.start, object.end))
		return false;
	return has_foreign_slot(&object, relas, relas_bytes, own, own_end) ||
	       has_foreign_slot(&object, jumps, jumps_bytes, own, own_end);
}

LW_COLD bool lw_bound_elsewhere(void)
{
	uintptr_t own, own_end;

	if (!find((const void *)(uintptr_t)lw_bound_elsewhere, &own, &own_end) || _r_debug.r_state != RT_CONSISTENT)
		return true;
	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
		if (!is_in(map->l_ld, own, own_end) && is_object_foreign(map, own, own_end))
			return true;
	}
	return false;
}
