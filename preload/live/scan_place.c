/* SPDX-License-Identifier: MIT */
/*
 * scan_place.c - addresses to loaded objects, threads and frames; see scan_place.h.
 *
 * The loader is asked by _dl_find_object() only, which takes no lock. A stopped thread's frames are walked by
 * the full evaluator from the registers it was stopped with, over memory that the maps say is readable.
 */
#include "preload/live/scan_place.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/share/box.h"
#include "preload/unwind/cfi.h"

enum { MOST_FRAMES = 512 };

static uint16_t number_of(uintptr_t address)
{
	uint32_t nr = lw_load_acquire(&lw_own.nr_modules);

	for (uint32_t i = nr; i-- > 0;) {
		const struct lw_module *module = lw_box_module(i);

		if (!module->is_unloaded && address >= module->start && address < module->end)
			return (uint16_t)i;
	}
	return LW_NO_MODULE;
}

bool lw_scan_place_find(uintptr_t address, struct lw_place *place)
{
	const char *path, *slash;
	struct dl_find_object object;

	*place = (struct lw_place){ .module = LW_NO_MODULE };
	if (!address || _dl_find_object((void *)address, &object))
		return false;
	path = object.dlfo_link_map->l_name;
	slash = strrchr(path, '/');
	path = slash ? slash + 1 : path;
	place->module = number_of(address);
	place->offset = address - object.dlfo_link_map->l_addr;
	memcpy(place->name, path, strnlen(path, sizeof(place->name) - 1));
	if (!place->name[0]) /* the program itself */
		place->name[0] = '.';
	return true;
}

static bool read_word(void *context, uintptr_t address, uint64_t *value)
{
	const struct lw_map *map = lw_maps_at(context, address);

	if (address % sizeof(*value) || !map || address < map->start || address + sizeof(*value) > map->end ||
			!(map->flags & LW_MAP_READ) || map->flags & (LW_MAP_DEVICE | LW_MAP_SPECIAL | LW_MAP_FILE))
		return false;
	memcpy(value, (const void *)address, sizeof(*value));
	return true;
}

/* The pc of the frame that an address of the stack belongs to; 0: it cannot be told. */
static uintptr_t frame_at(const struct lw_maps *maps, const struct lw_scan_thread *thread, uintptr_t address)
{
	uint64_t regs[LW_NR_REGS];
	bool is_exact = true;

	memcpy(regs, thread->frame, sizeof(regs));
	for (int i = 0; regs[LW_REG_PC] && i < MOST_FRAMES; i++) {
		uintptr_t pc = regs[LW_REG_PC] - !is_exact, sp = regs[LW_REG_SP];

		if (!lw_cfi_step(regs, &is_exact, read_word, (void *)(uintptr_t)maps))
			return i ? pc : 0; /* the outermost: start of the thread */
		if (regs[LW_REG_SP] > address)
			return pc;
		if (!is_exact && regs[LW_REG_SP] <= sp)
			break;
	}
	return 0;
}

/* Whose stack is it? The thread whose stack pointer is the nearest below, in the same mapping. */
static const struct lw_scan_thread *thread_at(const struct lw_maps *maps, const struct lw_scan_threads *threads,
		uintptr_t address)
{
	const struct lw_map *map = lw_maps_at(maps, address);
	const struct lw_scan_thread *best = NULL;

	for (size_t i = 0; map && i < threads->nr_known; i++) {
		const struct lw_scan_thread *thread = &threads->known[i];

		if (thread->sp >= map->start && thread->sp <= address && (!best || thread->sp > best->sp))
			best = thread;
	}
	return best;
}

void lw_scan_place_root(const struct lw_maps *maps, const struct lw_scan_threads *threads, uintptr_t address,
		struct lw_chain *chain)
{
	const struct lw_scan_thread *thread;

	chain->root_at = address;
	if (lw_scan_place_find(address, &chain->place)) {
		chain->root = LW_ROOT_DATA;
		return;
	}
	thread = thread_at(maps, threads, address);
	if (!thread) {
		chain->root = LW_ROOT_MEMORY;
		return;
	}
	chain->root = LW_ROOT_STACK;
	chain->tid = thread->tid;
	(void)lw_scan_place_find(frame_at(maps, thread, address), &chain->place);
}
