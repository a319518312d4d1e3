/* SPDX-License-Identifier: MIT */
/* modules.c - the list of loaded objects; see modules.h. */
#include "preload/unwind/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "preload/base/hot.h"
#include "preload/base/sys.h"
#include "preload/share/box.h"
#include "preload/unwind/rules.h"

enum { CACHE_SLOTS = 256, NOTE_GNU_BUILD_ID = 3 };

/* link_map -> module number + 1, checked against the region before use: relaxed. */
static uint16_t cache[CACHE_SLOTS];
static uint32_t has_revived;

static size_t cache_slot(const struct link_map *map)
{
	return ((uintptr_t)map >> 5) * UINT64_C(0x9e3779b97f4a7c15) >> 56;
}

static bool is_module(uint32_t id, const struct dl_find_object *object)
{
	const struct lw_module *module = lw_box_module(id);

	return module->start == (uintptr_t)object->dlfo_map_start &&
	       module->end == (uintptr_t)object->dlfo_map_end && !lw_load(&module->is_unloaded) &&
	       module->base == object->dlfo_link_map->l_addr;
}

static void read_build_id(struct lw_module *module, const uint8_t *notes, size_t bytes)
{
	while (bytes >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const void *)notes;
		size_t name = LW_ALIGN_UP((size_t)note->n_namesz, (size_t)4);
		size_t whole = sizeof(*note) + name + LW_ALIGN_UP((size_t)note->n_descsz, (size_t)4);

		if (whole > bytes)
			return;
		if (note->n_type == NOTE_GNU_BUILD_ID && note->n_namesz == 4 &&
				!memcmp(notes + sizeof(*note), "GNU", 4)) {
			module->build_id_bytes = (uint8_t)(note->n_descsz < LW_BUILD_ID_BYTES
								   ? note->n_descsz : LW_BUILD_ID_BYTES);
			memcpy(module->build_id, notes + sizeof(*note) + name, module->build_id_bytes);
			return;
		}
		notes += whole;
		bytes -= whole;
	}
}

/* The program headers are mapped with the first segment, where the ELF header says. */
static void find_build_id(struct lw_module *module)
{
	const Elf64_Ehdr *ehdr = (const void *)module->start;
	const Elf64_Phdr *phdr;

	if (module->end - module->start < 4096 || memcmp(ehdr->e_ident, ELFMAG, SELFMAG) ||
			ehdr->e_phoff + (uint64_t)ehdr->e_phnum * sizeof(*phdr) > 4096)
		return;
	phdr = (const void *)((const char *)ehdr + ehdr->e_phoff);
	for (unsigned i = 0; i < ehdr->e_phnum && !module->build_id_bytes; i++) {
		uint64_t at = module->base + phdr[i].p_vaddr;

		if (phdr[i].p_type == PT_NOTE && at >= module->start && at < module->end &&
				phdr[i].p_memsz <= module->end - at)
			read_build_id(module, (const void *)at, phdr[i].p_memsz);
	}
}

/* The path as other programs can open it; the loader's own name may be empty or relative. */
static size_t find_path(const struct link_map *map, char *out, size_t out_bytes)
{
	const char *name = map->l_name ? map->l_name : "";
	size_t bytes = strnlen(name, out_bytes / 2);
	long cwd = 0;

	if (!bytes) { /* the program itself */
		memcpy(out, lw_box->exe, lw_own.exe_bytes);
		return lw_own.exe_bytes;
	}
	if (name[0] != '/' && memchr(name, '/', bytes)) {
		cwd = lw_syscall(SYS_getcwd, out, out_bytes / 2);
		cwd = cwd > 1 ? cwd - 1 : 0; /* with its NUL; "/" alone needs no second one */
		if (cwd)
			out[cwd++] = '/';
	}
	memcpy(out + cwd, name, bytes);
	return (size_t)cwd + bytes;
}

static bool has_path(const struct lw_module *module, const char *path, size_t path_bytes)
{
	return module->path_bytes == path_bytes && !memcmp(lw_box_pool(module->path_off), path, path_bytes);
}

static bool is_same_file(const struct lw_module *a, const struct lw_module *b)
{
	return a->base == b->base && a->start == b->start && a->end == b->end &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}

static uint16_t add_locked(const struct lw_module *found, const char *path, size_t path_bytes)
		LW_HOLDS(lw_sites_lock)
{
	uint32_t id;
	uint32_t path_off;

	for (id = 0; id < lw_own.nr_modules; id++) {
		struct lw_module *module = lw_box_module(id);

		if (!is_same_file(module, found) || !has_path(module, path, path_bytes))
			continue;
		if (lw_load(&module->is_unloaded)) {
			lw_store(&module->is_unloaded, 0);
			has_revived = 1;
		}
		return (uint16_t)id;
	}
	path_off = id < lw_own.max_modules ? lw_box_take_locked(path_bytes + 1) : 0;
	if (!path_off) {
		lw_box_drop(LW_DROP_MODULES);
		return LW_NO_MODULE;
	}
	memcpy(lw_box_pool(path_off), path, path_bytes);
	*lw_box_module(id) = *found;
	lw_box_module(id)->path_off = path_off;
	lw_box_module(id)->path_bytes = (uint16_t)path_bytes;
	LW_BOX_PUBLISH(nr_modules, id + 1);
	return (uint16_t)id;
}

static LW_COLD uint16_t add(const struct dl_find_object *object)
{
	struct lw_module found = {
		.base = object->dlfo_link_map->l_addr,
		.start = (uintptr_t)object->dlfo_map_start,
		.end = (uintptr_t)object->dlfo_map_end,
	};
	char path[1024 + LW_EXE_BYTES];
	size_t path_bytes = find_path(object->dlfo_link_map, path, sizeof(path));
	uint16_t id;

	find_build_id(&found);
	lw_lock_acquire(&lw_sites_lock);
	id = add_locked(&found, path, path_bytes);
	lw_lock_release(&lw_sites_lock);
	return id;
}

static uint16_t find(uintptr_t pc)
{
	struct dl_find_object object;
	uint16_t *slot, id;

	if (_dl_find_object((void *)pc, &object))
		return LW_NO_MODULE;
	slot = &cache[cache_slot(object.dlfo_link_map)];
	id = lw_load(slot);
	if (id && id <= lw_load_acquire(&lw_own.nr_modules) && is_module(id - 1u, &object))
		return (uint16_t)(id - 1);
	id = add(&object);
	if (id != LW_NO_MODULE)
		lw_store(slot, (uint16_t)(id + 1));
	return id;
}

void lw_modules_resolve(struct lw_stack *stack)
{
	uint64_t start = 1, end = 0;
	uint16_t id = LW_NO_MODULE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		uint64_t pc = stack->pcs[i] - 1; /* a call may be a function's last instruction */

		if (pc < start || pc >= end) {
			id = find(pc);
			start = id == LW_NO_MODULE ? 1 : lw_box_module(id)->start;
			end = id == LW_NO_MODULE ? 0 : lw_box_module(id)->end;
		}
		stack->modules[i] = id;
	}
}

void lw_modules_unload_begin(void)
{
	__atomic_fetch_add(&lw_hot.unloading, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&lw_hot.generation, 1, __ATOMIC_SEQ_CST);
}

static bool is_still_there(const struct lw_module *module)
{
	struct dl_find_object object;

	return !_dl_find_object((void *)module->start, &object) &&
	       (uintptr_t)object.dlfo_map_start == module->start &&
	       (uintptr_t)object.dlfo_map_end == module->end &&
	       object.dlfo_link_map->l_addr == module->base;
}

void lw_modules_unload_end(void (*on_change)(void))
{
	bool has_changed = false;

	for (uint32_t id = 0; lw_box && id < lw_load_acquire(&lw_own.nr_modules); id++) {
		struct lw_module *module = lw_box_module(id);

		if (!lw_load(&module->is_unloaded) && !is_still_there(module)) {
			lw_store(&module->is_unloaded, 1);
			has_changed = true;
		}
	}
	if (has_changed) {
		lw_rules_clear();
		on_change();
	}
	__atomic_fetch_sub(&lw_hot.unloading, 1, __ATOMIC_SEQ_CST);
}

bool lw_modules_take_revived(void)
{
	return lw_load(&has_revived) && __atomic_exchange_n(&has_revived, 0, __ATOMIC_RELAXED);
}
