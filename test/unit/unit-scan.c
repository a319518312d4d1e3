/* SPDX-License-Identifier: MIT */
/*
 * unit-scan.c - what the scanner makes of pointers, in memory of the test itself: marks follow pointers of every form,
 * the same where what small blocks point to was found beforehand, and lost blocks are grouped under those that lead.
 */
#include "test/unit/tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/live/scan_link.h"
#include "preload/live/scan_mark.h"

static uint64_t state = 1;

static uint32_t roll(uint32_t sides)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % sides;
}

/*
 * 24 bytes a block is the limit, whatever hangs on what: each block on the one before, or all on roots, with
 * one, two or three pointers in each.
 */
static void test_room(bool is_linked, unsigned nr_roots, unsigned nr_pointers)
{
	enum { NR = 200000, WORDS = 8 };
	uint64_t *blocks = mmap(NULL, NR * WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *roots = mmap(NULL, NR * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct lw_scan_marks marks = { 0 };
	uint64_t nr_reached = 0;

	(void)lw_maps_read(&marks.maps);
	for (uint64_t i = 0; i < NR; i++) {
		for (unsigned k = 0; k < nr_pointers; k++) /* the first leads through all */
			blocks[i * WORDS + k] = (uintptr_t)&blocks[(i * (k ? 2 * k + 1 : 1) + NR - 1) % NR * WORDS];
		roots[i] = i < nr_roots ? (uintptr_t)&blocks[i * WORDS] : 0;
		lw_scan_index_add(&marks.index, (uintptr_t)&blocks[i * WORDS], 40, 1, 0);
	}
	(void)(lw_scan_index_sort(&marks.index) && lw_scan_index_finish(&marks.index) && lw_scan_marks_init(&marks));
	if (is_linked)
		lw_scan_links_find(&marks);
	lw_scan_mark_range(&marks, (uintptr_t)roots, (uintptr_t)(roots + NR));
	lw_scan_mark_rest(&marks);
	for (uint64_t i = 0; i < NR; i++)
		nr_reached += (marks.index.entries[i].start & LW_SCAN_REACHED) && !(marks.index.entries[i].start & LW_SCAN_LATER);
	is_u64(nr_reached, NR, "all blocks are reached, %u from outside, with %u pointers each", nr_roots, nr_pointers);
	ok(marks.index.used_bytes <= UINT64_C(24) * NR, "%" PRIu64 " bytes for %d blocks", marks.index.used_bytes, NR);
	ok(marks.swept_bytes == (UINT64_C(40) + 8) * NR, "each counts as read once");
	lw_scan_mark_narrow(&marks);
	ok(marks.left_first == marks.left_end, "nothing is left");
	(void)close(marks.maps.pagemap);
	lw_scan_rooms_free();
	(void)munmap(blocks, NR * WORDS * 8);
	(void)munmap(roots, NR * 8);
}

/* ---- marks ---- */

enum { CELLS = 64, CELL_BYTES = 64 };

static uint64_t *memory; /* CELLS blocks of CELL_BYTES */

static uint64_t *cell(unsigned i)
{
	return memory + i * (CELL_BYTES / 8);
}

static struct lw_scan_marks marks_of_cells(void)
{
	static uint32_t lost_sites[CELLS];
	struct lw_scan_marks marks = { .lost_sites = lost_sites };

	(void)lw_maps_read(&marks.maps);
	for (unsigned i = 0; i < CELLS; i++)
		lw_scan_index_add(&marks.index, (uintptr_t)cell(i), CELL_BYTES - 16, i, 0);
	(void)(lw_scan_index_sort(&marks.index) && lw_scan_index_finish(&marks.index) && lw_scan_marks_init(&marks));
	return marks;
}

static void test_pointers(void)
{
	static const struct {
		const char *name;
		uint64_t plus, or;
		bool counts;
	} forms[] = {
		{ "the start", 0, 0, true },
		{ "the interior", 17, 0, true },
		{ "one past the end", CELL_BYTES - 16, 0, true },
		{ "two past the end", CELL_BYTES - 15, 0, false },
		{ "a low tag", 0, 7, true },
		{ "a tag in the top byte", 0, UINT64_C(0xa5) << 56, true },
		{ "the interior, with a tag in the top byte", 8, UINT64_C(0x80) << 56, true },
		{ "a NaN box", 0, UINT64_C(0xfffb) << 48, true },
		{ "a NaN box of the interior", 8, UINT64_C(0xfffb) << 48, false },
		{ "before the start", (uint64_t)-1, 0, false },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct lw_scan_marks marks;
		bool is_reached;

		memset(memory, 0, CELLS * CELL_BYTES);
		marks = marks_of_cells();
		lw_scan_mark_word(&marks, ((uintptr_t)cell(5) + forms[i].plus) | forms[i].or);
		lw_scan_mark_rest(&marks);
		is_reached = marks.index.entries[5].start & LW_SCAN_REACHED;
		ok(is_reached == forms[i].counts, "%s %s", forms[i].name, forms[i].counts ? "counts" : "does not count");
	}
}

static void test_flood(void)
{
	struct lw_scan_marks marks;
	struct lw_scan_site sites[CELLS] = { 0 };
	uint64_t roots[3] = { 0 }, pointer;
	unsigned nr_reached = 0, nr_listed = 0;

	memset(memory, 0, CELLS * CELL_BYTES);
	for (unsigned i = 0; i < 9; i++) /* 0 -> 1 -> ... -> 9 */
		cell(i)[1] = (uintptr_t)cell(i + 1);
	cell(9)[2] = (uintptr_t)cell(0); /* a ring */
	pointer = (uintptr_t)cell(12);
	memcpy((char *)cell(3) + 12, &pointer, 8); /* at an odd place */
	cell(20)[0] = (uintptr_t)cell(21);	   /* lost: a chain whose head is met last */
	cell(19)[0] = (uintptr_t)cell(20);
	cell(21)[3] = (uintptr_t)cell(3); /* may point to what is reachable */
	cell(30)[0] = (uintptr_t)cell(31); /* lost: a ring */
	cell(31)[0] = (uintptr_t)cell(30);
	cell(40)[0] = (uintptr_t)cell(40); /* lost: points to itself */
	roots[1] = (uintptr_t)cell(4) + 3;
	marks = marks_of_cells();
	lw_scan_mark_range(&marks, (uintptr_t)roots, (uintptr_t)(roots + 3));
	lw_scan_mark_rest(&marks);
	for (unsigned i = 0; i < CELLS; i++)
		nr_reached += (marks.index.entries[i].start & LW_SCAN_REACHED) != 0;
	is_u64(nr_reached, 11, "what hangs on a root is reached");
	is_u64(marks.parents[6], 5, "each knows by whom");
	is_u64(marks.parents[4], LW_SCAN_NOTHING, "or that it was a root");
	lw_scan_judge(&marks, sites, CELLS);
	ok(!sites[4].lost_blocks && !sites[4].indirect_blocks && !sites[12].lost_blocks, "and is not accused");
	ok(sites[19].lost_blocks == 1 && sites[20].indirect_blocks == 1 && sites[21].indirect_blocks == 1, "a chain is led by its head");
	is_u64(sites[19].dragged_blocks, 2, "which drags the rest along");
	ok(sites[30].lost_blocks == 1 && sites[31].indirect_blocks == 1 && sites[30].dragged_blocks == 1, "one block leads a ring");
	ok(sites[40].lost_blocks == 1 && !sites[40].dragged_blocks, "one that points to itself leads itself");
	is_u64(sites[50].lost_bytes, CELL_BYTES - 16, "bytes are counted");
	for (uint32_t i = 0; i < marks.nr_lost_sites; i++)
		nr_listed += sites[marks.lost_sites[i]].lost_blocks + sites[marks.lost_sites[i]].indirect_blocks > 0;
	ok(marks.nr_lost_sites == CELLS - nr_reached && nr_listed == marks.nr_lost_sites, "each site with a sum is listed once");
}

/* A buffer of stdio is there, but what old words are in it counts for nothing. */
static void test_bare(void)
{
	struct lw_scan_marks marks;

	memset(memory, 0, CELLS * CELL_BYTES);
	cell(1)[0] = (uintptr_t)cell(2);
	marks = marks_of_cells();
	marks.index.entries[1].start |= LW_SCAN_BARE;
	lw_scan_mark_word(&marks, (uintptr_t)cell(1));
	lw_scan_mark_rest(&marks);
	ok(marks.index.entries[1].start & LW_SCAN_REACHED && !(marks.index.entries[2].start & LW_SCAN_REACHED),
			"old words in a buffer of stdio are no pointers");
}

/* A late leader takes over what earlier ones led. */
static void test_late_leader(void)
{
	struct lw_scan_marks marks;
	struct lw_scan_site sites[CELLS] = { 0 };

	memset(memory, 0, CELLS * CELL_BYTES);
	cell(1)[0] = (uintptr_t)cell(2);
	cell(60)[0] = (uintptr_t)cell(1);
	marks = marks_of_cells();
	lw_scan_judge(&marks, sites, CELLS);
	ok(!sites[1].lost_blocks && sites[1].indirect_blocks == 1 && sites[60].lost_blocks == 1 && sites[60].dragged_blocks == 2,
			"a leader that is met by another is led by it");
}

/* So does one that enters a ring behind its leader, which then leads no more. */
static void test_ring(void)
{
	struct lw_scan_marks marks;
	struct lw_scan_site sites[CELLS] = { 0 };

	memset(memory, 0, CELLS * CELL_BYTES);
	cell(1)[0] = (uintptr_t)cell(2);
	cell(2)[0] = (uintptr_t)cell(1);
	cell(3)[0] = (uintptr_t)cell(2);
	marks = marks_of_cells();
	lw_scan_judge(&marks, sites, CELLS);
	ok(sites[1].indirect_blocks == 1 && sites[2].indirect_blocks == 1 && !sites[1].lost_blocks, "no block of the ring leads");
	ok(sites[3].lost_blocks == 1 && sites[3].dragged_blocks == 2, "but who points into it, and drags it along");
}

/* ---- links ---- */

enum { NR_GRAPHS = 300 };

/* Pointers of every form from block to block; some to nothing. */
static void random_graph(uint64_t most)
{
	memset(memory, 0, CELLS * CELL_BYTES);
	for (unsigned i = 0; i < CELLS; i++) {
		for (uint64_t k = roll((uint32_t)most + 1); k > 0; k--) {
			uint64_t pointer = (uintptr_t)cell(roll(CELLS)), at = roll((CELL_BYTES - 16) / 4 - 1) * 4;

			pointer += roll(3) ? 0 : roll(CELL_BYTES);
			pointer |= roll(8) ? 0 : UINT64_C(0xa5) << 56;
			memcpy((char *)cell(i) + at, &pointer, sizeof(pointer));
		}
	}
}

/* A ring may be led by one or the other, but here both go by address. */
static bool is_same(const struct lw_scan_marks *one, const struct lw_scan_marks *two)
{
	const uint64_t marks = LW_SCAN_REACHED | LW_SCAN_INDIRECT | LW_SCAN_LEADER | LW_SCAN_DRAGGED;

	for (unsigned i = 0; i < CELLS; i++) {
		const struct lw_scan_entry *a = &one->index.entries[i], *b = &two->index.entries[i];

		if ((a->start & marks) != (b->start & marks) || lw_scan_bytes(a) != lw_scan_bytes(b) ||
				lw_scan_site(a) != lw_scan_site(b))
			return false;
	}
	return true;
}

static unsigned distance(const struct lw_scan_marks *marks, uint32_t at)
{
	unsigned nr = 0;

	for (; marks->parents[at] != LW_SCAN_NOTHING && nr < CELLS; nr++)
		at = marks->parents[at];
	return nr;
}

static void test_links(void)
{
	unsigned nr_wrong = 0, nr_linked = 0, nr_pairs = 0, nr_farther = 0;

	for (unsigned round = 0; round < NR_GRAPHS; round++) {
		struct lw_scan_site sites[2][CELLS];
		struct lw_scan_marks marks[2];
		unsigned root = roll(CELLS), hidden = roll(3);

		memset(sites, 0, sizeof(sites));
		random_graph(1 + round % 4);
		for (int i = 0; i < 2; i++) {
			marks[i] = marks_of_cells();
			if (i)
				lw_scan_links_find(&marks[i]);
			for (unsigned k = 0; i && k < CELLS; k++) {
				nr_linked += (marks[i].index.entries[k].start & LW_SCAN_LINKED) != 0;
				nr_pairs += (marks[i].index.entries[k].start & LW_SCAN_PAIR) != 0;
			}
			lw_scan_mark_word(&marks[i], (uintptr_t)cell(root));
			lw_scan_mark_rest(&marks[i]);
			lw_scan_mark_narrow(&marks[i]);
			if (hidden)
				(void)lw_scan_spare_few(&marks[i], hidden - 1, CELLS);
			lw_scan_judge(&marks[i], sites[i], CELLS);
			(void)close(marks[i].maps.pagemap);
		}
		nr_wrong += !is_same(&marks[0], &marks[1]) || memcmp(sites[0], sites[1], sizeof(sites[0])) != 0;
		for (uint32_t i = 0; i < CELLS && !hidden; i++)
			nr_farther += marks[0].index.entries[i].start & LW_SCAN_REACHED &&
				      distance(&marks[0], i) != distance(&marks[1], i);
		lw_scan_rooms_free();
	}
	ok(nr_linked > NR_GRAPHS && nr_pairs > NR_GRAPHS && nr_linked < NR_GRAPHS * CELLS,
			"%u blocks point to at most two, %u to two", nr_linked, nr_pairs);
	is_u64(nr_wrong, 0, "with and without links the verdicts are the same");
	is_u64(nr_farther, 0, "and the shortest ways as long");
}

/* What lies in a block that holds no pointers, or in memory that is no block, is not linked. */
static void test_unlinked(void)
{
	struct lw_scan_marks marks;

	memset(memory, 0, CELLS * CELL_BYTES);
	cell(1)[0] = (uintptr_t)cell(2);
	marks = marks_of_cells();
	marks.index.entries[1].start |= LW_SCAN_BARE;
	marks.index.entries[3].start |= LW_SCAN_UNOWNED;
	lw_scan_links_find(&marks);
	ok(!((marks.index.entries[1].start | marks.index.entries[3].start) & LW_SCAN_LINKED) &&
					marks.index.entries[2].start & LW_SCAN_LINKED,
			"buffers of stdio and memory between blocks are left alone");
	lw_scan_mark_word(&marks, (uintptr_t)cell(1));
	lw_scan_mark_rest(&marks);
	ok(!(marks.index.entries[2].start & LW_SCAN_REACHED), "and hold no pointers still");
}

/* ---- leaders ---- */

/* What each cell leads to, itself too, as a mark from it alone finds it: a bit a cell. */
static void find_reach(uint64_t reach[CELLS])
{
	for (unsigned i = 0; i < CELLS; i++) {
		struct lw_scan_marks marks = marks_of_cells();

		lw_scan_mark_word(&marks, (uintptr_t)cell(i));
		lw_scan_mark_rest(&marks);
		reach[i] = 0;
		for (unsigned k = 0; k < CELLS; k++)
			reach[i] |= (uint64_t)((marks.index.entries[k].start & LW_SCAN_REACHED) != 0) << k;
		(void)close(marks.maps.pagemap);
		lw_scan_rooms_free();
	}
}

/* Does whatever of these leads to this cell also lie behind it? Then it, or another of its ring, has to lead. */
static bool may_lead(const uint64_t reach[CELLS], uint64_t left, unsigned at)
{
	for (unsigned i = 0; i < CELLS; i++) {
		if (left >> i & 1 && reach[i] >> at & 1 && !(reach[at] >> i & 1))
			return false;
	}
	return true;
}

/* Of each ring, or single block, that nothing else leads to, one leads; it drags along what no other leader did. */
static void test_leaders(void)
{
	unsigned nr_wrong = 0, nr_leaders = 0;

	for (unsigned round = 0; round < 60; round++) {
		uint64_t reach[CELLS], left, led = 0, dragged = 0;
		struct lw_scan_site sites[CELLS] = { 0 };
		struct lw_scan_marks marks;
		unsigned root = roll(CELLS);

		random_graph(1 + round % 3);
		find_reach(reach);
		left = ~reach[root];
		marks = marks_of_cells();
		lw_scan_mark_word(&marks, (uintptr_t)cell(root));
		lw_scan_mark_rest(&marks);
		lw_scan_judge(&marks, sites, CELLS);
		for (unsigned i = 0; i < CELLS; i++) {
			bool leads = sites[i].lost_blocks;

			nr_leaders += leads;
			nr_wrong += leads && (!(left >> i & 1) || !may_lead(reach, left, i) || led >> i & 1);
			led |= leads ? reach[i] : 0;
			dragged += sites[i].dragged_blocks + leads;
		}
		/* all are led, none twice */
		nr_wrong += (led & left) != left || dragged != (uint64_t)__builtin_popcountll(left);
		(void)close(marks.maps.pagemap);
		lw_scan_rooms_free();
	}
	is_u64(nr_wrong, 0, "%u leaders of lost blocks are those that have to lead", nr_leaders);
}

int main(void)
{
	memory = mmap(NULL, CELLS * CELL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned pointers = 1; pointers <= 3; pointers++) {
		test_room(false, 1, pointers);
		test_room(true, 1, pointers);
		test_room(false, 200000, pointers);
		test_room(true, 200000, pointers);
	}
	test_pointers();
	test_flood();
	test_bare();
	test_late_leader();
	test_ring();
	test_links();
	test_unlinked();
	test_leaders();
	return done();
}
