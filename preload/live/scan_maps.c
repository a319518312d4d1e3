/* SPDX-License-Identifier: MIT */
/* scan_maps.c - reading /proc/self/maps and pagemap with raw calls; see scan_maps.h. */
#include "preload/live/scan_maps.h"

#include <string.h>

#include "preload/base/sys.h"
#include "preload/live/scan_index.h"

enum {
	PAGES_AT_ONCE = 512,
	SMALL_BYTES = 16384, /* stretches of private memory up to this are read without asking */
};

static const uintptr_t page_bytes = 4096;

/* /proc/PID/pagemap, Documentation/admin-guide/mm/pagemap.rst */
static const uint64_t page_is_present = UINT64_C(1) << 63;
static const uint64_t page_is_swapped = UINT64_C(1) << 62;
static const uint64_t page_is_file_or_shared = UINT64_C(1) << 61;
static const uint64_t page_is_guard = UINT64_C(1) << 58; /* MADV_GUARD_INSTALL */

static const char *parse_hex(const char *at, uint64_t *value)
{
	*value = 0;
	for (;; at++) {
		unsigned digit = (unsigned)*at - '0';

		if (digit > 9)
			digit = (unsigned)*at - 'a' + 10;
		if ((digit > 15) || (*at < '0'))
			return at;
		*value = *value << 4 | digit;
	}
}

static const char *after_blanks(const char *at)
{
	while (*at == ' ')
		at++;
	return at;
}

static const char *after_word(const char *at)
{
	while (*at && *at != ' ')
		at++;
	return after_blanks(at);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static uint32_t name_flags(const char *name)
{
	if (begins(name, "/dev/"))
		return begins(name, "/dev/shm/") || begins(name, "/dev/zero") || begins(name, "/dev/hugepages/")
				       ? LW_MAP_FILE
				       : LW_MAP_FILE | LW_MAP_DEVICE;
	if (begins(name, "[heap]"))
		return LW_MAP_BRK;
	if (begins(name, "[stack]"))
		return LW_MAP_MAIN_STACK;
	if (begins(name, "[v") || begins(name, "anon_inode:")) /* perf buffers, rings of the kernel */
		return LW_MAP_SPECIAL;
	if (begins(name, "[anon:leakwatch"))
		return LW_MAP_OWN;
	return 0;
}

/* "7f00-7f01 rw-p 00000000 08:01 1234   /path", without its newline. */
static bool parse_line(const char *line, struct lw_map *map)
{
	uint64_t start, end;
	const char *at = parse_hex(line, &start);

	if (*at != '-')
		return false;
	at = after_blanks(parse_hex(at + 1, &end));
	if (strlen(at) < 5)
		return false;
	map->start = start;
	map->end = end;
	map->flags = (at[0] == 'r' ? LW_MAP_READ : 0) | (at[1] == 'w' ? LW_MAP_WRITE : 0) |
		     (at[3] == 's' ? LW_MAP_SHARED : 0);
	at = after_word(after_word(after_word(at))); /* rights, offset, device */
	if (*at != '0')
		map->flags |= LW_MAP_FILE;
	map->flags |= name_flags(after_word(at));
	return start < end && end <= LW_SCAN_ADDRESS + 1;
}

static void take_line(struct lw_maps *maps, const char *line)
{
	if (maps->nr < maps->max && parse_line(line, &maps->maps[maps->nr]))
		maps->nr++;
}

/* Whole lines of text are taken; what is left of the last moves to the front. Returns its length. */
static size_t take_lines(struct lw_maps *maps, char *text, size_t nr_bytes)
{
	char *at = text, *end = text + nr_bytes, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		*newline = '\0';
		take_line(maps, at);
		at = newline + 1;
	}
	memmove(text, at, (size_t)(end - at));
	return (size_t)(end - at);
}

bool lw_maps_read(struct lw_maps *maps)
{
	size_t kept = 0;
	long got = -1;
	int fd;

	maps->nr = 0;
	maps->max = LW_MAPS_MAX;
	maps->text = lw_scan_sparse_room(LW_MAPS_TEXT_BYTES);
	maps->maps = lw_scan_sparse_room(LW_MAPS_MAX * sizeof(*maps->maps));
	maps->pagemap = lw_sys_open("/proc/self/pagemap", O_RDONLY);
	fd = lw_sys_open("/proc/self/maps", O_RDONLY);
	if (!maps->text || !maps->maps || fd < 0)
		return false;
	while (kept < LW_MAPS_TEXT_BYTES && (got = lw_sys_read(fd, maps->text + kept, LW_MAPS_TEXT_BYTES - kept)) > 0)
		kept = take_lines(maps, maps->text, kept + (size_t)got);
	lw_sys_close(fd);
	return got == 0 && maps->nr > 0 && maps->nr < maps->max;
}

const struct lw_map *lw_maps_at(const struct lw_maps *maps, uintptr_t address)
{
	size_t lo = 0, hi = maps->nr;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (maps->maps[middle].end <= address)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < maps->nr ? &maps->maps[lo] : NULL;
}

/* Which pages from `from` on hold something; false: it cannot be told. */
static bool ask_pagemap(const struct lw_maps *maps, const struct lw_map *map, uintptr_t from, size_t nr_pages,
		uint8_t *exists)
{
	uint64_t words[PAGES_AT_ONCE];
	long got;

	if (maps->pagemap < 0 || map->flags & LW_MAP_SHARED)
		return false;
	got = lw_syscall(SYS_pread64, maps->pagemap, words, nr_pages * 8, from / page_bytes * 8);
	if (got != (long)(nr_pages * 8))
		return false;
	for (size_t i = 0; i < nr_pages; i++) {
		bool is_there = words[i] & (page_is_present | page_is_swapped) && !(words[i] & page_is_guard);

		/* of a private file's mapping only what was written to can hold a pointer of this process */
		exists[i] = is_there && !(map->flags & LW_MAP_FILE && words[i] & page_is_file_or_shared);
	}
	return true;
}

static void find_pages(const struct lw_maps *maps, const struct lw_map *map, uintptr_t from, size_t nr_pages,
		uint8_t *exists)
{
	if (ask_pagemap(maps, map, from, nr_pages, exists))
		return;
	if (lw_syscall(SYS_mincore, from, nr_pages * page_bytes, exists) == 0) {
		for (size_t i = 0; i < nr_pages; i++)
			exists[i] &= 1;
		return;
	}
	memset(exists, !(map->flags & (LW_MAP_FILE | LW_MAP_SHARED)), nr_pages);
}

/* The pages of [from, to), all in one map, that exist, put together to stretches. */
static void visit_pages(const struct lw_maps *maps, const struct lw_map *map, uintptr_t from, uintptr_t to,
		lw_maps_visit_fn *visit, void *context)
{
	uint8_t exists[PAGES_AT_ONCE];
	uintptr_t open = 0; /* start of the stretch at hand, 0 none */

	for (uintptr_t page = from & ~(page_bytes - 1); page < to;) {
		size_t nr_pages = (LW_ALIGN_UP(to, page_bytes) - page) / page_bytes;

		nr_pages = nr_pages < PAGES_AT_ONCE ? nr_pages : PAGES_AT_ONCE;
		find_pages(maps, map, page, nr_pages, exists);
		for (size_t i = 0; i < nr_pages; i++, page += page_bytes) {
			if (exists[i] && !open)
				open = page < from ? from : page;
			if (!exists[i] && open) {
				visit(context, open, page);
				open = 0;
			}
		}
	}
	if (open)
		visit(context, open, to);
}

void lw_maps_visit(const struct lw_maps *maps, uintptr_t from, uintptr_t to, lw_maps_visit_fn *visit, void *context)
{
	const struct lw_map *end = maps->maps + maps->nr;

	for (const struct lw_map *map = lw_maps_at(maps, from); map && map < end && map->start < to; map++) {
		uintptr_t lo = map->start > from ? map->start : from, hi = map->end < to ? map->end : to;

		if (lo >= hi || !(map->flags & LW_MAP_READ) || map->flags & (LW_MAP_DEVICE | LW_MAP_SPECIAL))
			continue;
		if (hi - lo <= SMALL_BYTES && !(map->flags & (LW_MAP_FILE | LW_MAP_SHARED)))
			visit(context, lo, hi);
		else
			visit_pages(maps, map, lo, hi, visit, context);
	}
}
