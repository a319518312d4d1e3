/* SPDX-License-Identifier: MIT */
/*
 * unit-scan-index.c - where the scanner looks: the index finds the block of any address as a slow search does, maps give the
 * pages that exist, cuts leave the rest.
 */
#include "test/unit/tap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "preload/live/scan_cut.h"
#include "preload/live/scan_index.h"
#include "preload/live/scan_maps.h"

enum { NR_RANDOM = 3000 };

static uint64_t state = 1;

static uint32_t roll(uint32_t sides)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % sides;
}

/* ---- index ---- */

struct plain {
	uint64_t start, bytes;
};

static uint32_t slow_find(const struct lw_scan_index *index, uint64_t address)
{
	uint32_t found = LW_SCAN_NOTHING;

	for (uint32_t i = 0; i < index->nr; i++) {
		uint64_t bytes = lw_scan_bytes(&index->entries[i]);

		bytes = bytes < LW_SCAN_LEAST_REACH ? LW_SCAN_LEAST_REACH : bytes;
		if (lw_scan_start(&index->entries[i]) <= address)
			found = address - lw_scan_start(&index->entries[i]) <= bytes ? i : LW_SCAN_NOTHING;
	}
	return found;
}

static uint32_t fast_find(const struct lw_scan_index *index, uint64_t address)
{
	return address - index->lo < index->span ? lw_scan_index_find(index, address) : LW_SCAN_NOTHING;
}

static bool is_start_wrong(const struct lw_scan_index *index, uint64_t address)
{
	bool is_start = false;
	uint32_t at;

	if (address - index->lo >= index->span)
		return false;
	at = lw_scan_index_first(index, address, &is_start);
	return is_start && (at >= index->nr || lw_scan_start(&index->entries[at]) != address);
}

/* Blocks at multiples of `step`, of at least `least` bytes, some of them far apart or large. */
static void test_index(uint64_t step, uint64_t least, uint32_t large_of, const char *name)
{
	struct lw_scan_index index = { 0 };
	static struct plain blocks[NR_RANDOM];
	uint64_t at = UINT64_C(0x555500000010);
	int nr_wrong = 0;

	for (int i = 0; i < NR_RANDOM; i++) {
		uint64_t bytes = least + (roll(large_of) ? roll(400) : roll(40) ? roll(100000) : roll(100000000));

		bytes = large_of == UINT32_MAX ? least : bytes;
		blocks[i] = (struct plain){ at, bytes };
		at += (bytes + step - 1 + !bytes) / step * step + (roll(300) ? 0 : (uint64_t)roll(1 << 30) * 16 / step * step);
	}
	for (int i = 0; i < NR_RANDOM; i += 2) /* two runs, as the two tables give them */
		lw_scan_index_add(&index, blocks[i].start, blocks[i].bytes, (uint32_t)i, 0);
	for (int i = 1; i < NR_RANDOM; i += 2)
		lw_scan_index_add(&index, blocks[i].start, blocks[i].bytes, (uint32_t)i, LW_SCAN_UNJUDGED);
	ok(lw_scan_index_sort(&index) && lw_scan_index_finish(&index), "the index is built: %s", name);
	is_u64(index.nr, NR_RANDOM, "with all blocks");
	for (int i = 0; i < NR_RANDOM; i++)
		nr_wrong += lw_scan_start(&index.entries[i]) != blocks[i].start ||
			    lw_scan_bytes(&index.entries[i]) != blocks[i].bytes ||
			    lw_scan_site(&index.entries[i]) != (uint32_t)i;
	is_u64(nr_wrong, 0, "sorted, each with its size and site");
	nr_wrong = 0;
	for (int i = 0; i < NR_RANDOM * 4; i++) {
		const struct plain *block = &blocks[roll(NR_RANDOM)];
		uint64_t address = block->start + (roll(2) ? roll((uint32_t)block->bytes + 40) : roll(1 << 26)) - roll(40);

		address = roll(4) ? address : block->start;
		nr_wrong += fast_find(&index, address) != slow_find(&index, address) || is_start_wrong(&index, address);
	}
	is_u64(nr_wrong, 0, "finds what a slow search finds");
	lw_scan_rooms_free();
}

/* Two that begin at one place, as memory between blocks and a block without a size may. */
static void test_twins(void)
{
	struct lw_scan_index index = { 0 };
	int nr_wrong = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		lw_scan_index_add(&index, 0x10000 + i * 64, 40, 1, 0);
		if (i % 3 == 0)
			lw_scan_index_add(&index, 0x10000 + i * 64, 40, 2, 0);
	}
	(void)(lw_scan_index_sort(&index) && lw_scan_index_finish(&index));
	for (uint64_t i = 0; i < 1000 * 64; i += 4)
		nr_wrong += fast_find(&index, 0x10000 + i) != slow_find(&index, 0x10000 + i);
	ok(!index.is_exact && !nr_wrong, "two blocks that begin at one place");
	lw_scan_rooms_free();
}

/* ---- maps and cuts ---- */

struct seen {
	uintptr_t first, last;
	unsigned nr;
	uint64_t bytes;
};

static void see(void *context, uintptr_t from, uintptr_t to)
{
	struct seen *seen = context;

	seen->first = seen->nr++ ? seen->first : from;
	seen->last = to;
	seen->bytes += to - from;
}

static void test_maps(void)
{
	char *room = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct lw_maps maps = { 0 };
	struct seen seen = { 0 };

	room[3 * 4096] = room[4 * 4096] = room[40 * 4096] = shared[7 * 4096] = 1;
	(void)mprotect(room + 40 * 4096, 4096, PROT_NONE);
	ok(lw_maps_read(&maps) && maps.nr > 5, "the maps are read");
	lw_maps_visit(&maps, (uintptr_t)room, (uintptr_t)room + 64 * 4096, see, &seen);
	ok(seen.bytes == 8192 && seen.first == (uintptr_t)room + 3 * 4096, "only pages that exist and may be read");
	seen = (struct seen){ 0 };
	lw_maps_visit(&maps, (uintptr_t)shared, (uintptr_t)shared + 64 * 4096, see, &seen);
	is_u64(seen.bytes, 4096, "of shared memory too");
	seen = (struct seen){ 0 };
	lw_maps_visit(&maps, (uintptr_t)room + 3 * 4096 + 100, (uintptr_t)room + 3 * 4096 + 200, see, &seen);
	ok(seen.bytes == 100 && seen.nr == 1, "parts of a page");
	(void)munmap(room, 64 * 4096);
	(void)munmap(shared, 64 * 4096);
}

static void test_cuts(void)
{
	struct lw_scan_cuts cuts;
	struct seen seen = { 0 };
	size_t next = 0;

	(void)lw_scan_cuts_init(&cuts);
	lw_scan_cut(&cuts, 500, 700);
	lw_scan_cut(&cuts, 100, 200);
	lw_scan_cut(&cuts, 200, 250); /* touches */
	lw_scan_cut(&cuts, 120, 130);
	lw_scan_cut(&cuts, 690, 900);
	lw_scan_cuts_sort(&cuts);
	lw_scan_cuts_rest(&cuts, &next, 0, 300, see, &seen);
	is_u64(seen.bytes, 150, "what is left of a map with a hole");
	seen = (struct seen){ 0 };
	lw_scan_cuts_rest(&cuts, &next, 300, 600, see, &seen);
	is_u64(seen.bytes, 200, "a cut that reaches into the next");
	seen = (struct seen){ 0 };
	lw_scan_cuts_rest(&cuts, &next, 600, 1000, see, &seen);
	ok(seen.bytes == 100 && seen.first == 900, "overlapping cuts");
}

int main(void)
{
	test_index(16, 0, 50, "mixed sizes");
	test_index(8, 8, 50, "at multiples of eight");
	test_index(4, 1, UINT32_MAX, "many in a granule");
	test_index(16, 4096, UINT32_MAX, "large ones");
	test_index(1 << 20, 100, UINT32_MAX, "far apart");
	test_twins();
	test_maps();
	test_cuts();
	return done();
}
