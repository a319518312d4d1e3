/* SPDX-License-Identifier: MIT */
/*
 * unit-blocks.c - the block table against a plain array that remembers the same things.
 *
 * Blocks are only addresses here. Each slot of the array is one place where a block may start, with room of
 * its own up to the next, as real blocks have: small ones side by side, some further apart, some far, and
 * runs in which all sorts come in turn, so that they meet in the coarse words.
 */
#include "test/unit/tap.h"

#include <stdlib.h>

#include "preload/base/mem.h"
#include "preload/record/blocks.h"

union lw_hot_page lw_hot_page __attribute__((aligned(4096)));

enum { NR_SLOTS = 19980 /* a multiple of the runs */, NR_OPERATIONS = 1000000 };

struct slot {
	uintptr_t granule; /* a block here starts at it, or 16 bytes further where there are halves */
	uintptr_t address; /* of the block that is there */
	uint64_t room; /* bytes up to the next place */
	bool is_live;
	struct lw_block block;
};

static struct slot slots[NR_SLOTS];
static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state * UINT64_C(0x2545f4914f6cdd1d) >> 11) % below;
}

/* How far apart places are in each run; taken in turn. */
static const uint32_t distances[][4] = { { 32, 48, 64, 96 }, { 256, 272, 512, 1040 }, { 32 << 10, 40000, 1 << 20, 300 << 10 },
	{ 32, 4096, 48, 272 }, { 1040, 32, 32, 128 << 10 }, { 256, 32, 256, 300 << 10 } };

/* Runs of neighbouring places: low, across the end of leaves, and at the very end of the addresses. */
static void lay_out(uint32_t shift)
{
	static const uintptr_t starts[] = { 0x10000, UINT64_C(0x555555000000) - 2000 * 32,
		UINT64_C(0x7f0000ffff00), UINT64_C(0x7fffffff0000) - 4000 * 64, UINT64_C(1) << 40 };
	const size_t nr_runs = LW_ARRAY_LENGTH(starts) * LW_ARRAY_LENGTH(distances), in_run = NR_SLOTS / nr_runs;

	memset(slots, 0, sizeof(slots));
	for (size_t run = 0, i = 0; run < nr_runs; run++) {
		size_t sort = run % LW_ARRAY_LENGTH(distances);
		/* sorts of one start lie apart, and not at a border of anything */
		uintptr_t at = starts[run / LW_ARRAY_LENGTH(distances)] + sort * (UINT64_C(1) << 33) + sort * 0x1230;

		if (at >> 46) /* too near the end of the addresses for that */
			at -= sort * (UINT64_C(1) << 34);
		for (size_t end = i + in_run; i < end; i++) {
			slots[i] = (struct slot){ .granule = at, .room = distances[sort][i % 4] };
			at += distances[sort][i % 4];
			if (shift == 4 && i % 5 == 0) {
				slots[i].granule += 8; /* a neighbour 8 bytes away has a table of its own */
				slots[i].room -= 8;
			}
		}
	}
}

static uint64_t any_bytes(uint64_t room)
{
	static const uint64_t edges[] = { 0, 1, 8, 255, 256, (1 << 15) - 2, (1 << 15) - 1, 1 << 15, (1 << 18) - 2, (1 << 18) - 1, 1 << 18 };
	uint64_t edge = edges[any(LW_ARRAY_LENGTH(edges))];

	return edge <= room && any(2) ? edge : any(2) ? room : any(room + 1);
}

static struct lw_block any_block(uint64_t room)
{
	return (struct lw_block){
		.site = (uint32_t)any(LW_MAX_BLOCK_SITES),
		.birth = (uint32_t)any(LW_BLOCK_LAST_BIRTH + 1),
		.bytes = any_bytes(room),
		.family = (enum lw_family)any(3),
	};
}

static bool is_same(const struct lw_block *a, const struct lw_block *b)
{
	return a->site == b->site && a->birth == b->birth && a->bytes == b->bytes &&
	       a->family == b->family && a->is_inherited == b->is_inherited;
}

static bool try_insert(struct slot *slot)
{
	struct lw_block block, stale;
	bool is_stale, is_good;

	if (!slot->is_live)
		slot->address = slot->granule + (lw_hot.granule_shift == 5 && slot->room >= 48 && any(2) ? 16 : 0);
	block = any_block(slot->granule + slot->room - slot->address);
	is_good = lw_blocks_insert(lw_hide((const void *)slot->address), &block, &is_stale, &stale) && is_stale == slot->is_live &&
		  (!is_stale || is_same(&stale, &slot->block));
	slot->is_live = true;
	slot->block = block;
	return is_good;
}

static bool try_remove(struct slot *slot)
{
	struct lw_block block;
	bool was_there = lw_blocks_remove(slot->address, &block);
	bool is_good = was_there == slot->is_live && (!was_there || is_same(&block, &slot->block));

	slot->is_live = false;
	return is_good;
}

static bool try_find(const struct slot *slot)
{
	uintptr_t half = lw_hot.granule_shift == 5 ? 16 : 8;
	struct lw_block block;
	bool is_there = lw_blocks_find(slot->address, &block);

	if (is_there != slot->is_live || (is_there && !is_same(&block, &slot->block)))
		return false;
	/* the other half of the granule, or the 8-byte neighbour, is no block */
	return !lw_blocks_find(slot->address ^ half, &block) && !lw_blocks_remove(slot->address ^ half, &block);
}

static void count_wrong_visit(void *context, uintptr_t address, const struct lw_block *block)
{
	uint64_t *nr_wrong = context;
	size_t low = 0, high = NR_SLOTS;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (slots[middle].granule <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && slots[low - 1].is_live && slots[low - 1].address == address &&
			is_same(&slots[low - 1].block, block))
		slots[low - 1].is_live = false; /* seen: whatever stays live was not visited */
	else
		++*nr_wrong;
}

static int by_granule(const void *a, const void *b)
{
	const struct slot *left = a, *right = b;

	return left->granule < right->granule ? -1 : left->granule > right->granule;
}

static void test_random(uint32_t shift)
{
	uint64_t nr_wrong = 0, nr_left = 0;

	random_state = 88172645463325252u + shift;
	ok(lw_blocks_init(shift), "tables with granules of %u bytes", 1u << shift);
	lay_out(shift);
	for (size_t i = 0; i < NR_OPERATIONS; i++) {
		struct slot *slot = &slots[any(NR_SLOTS)];
		uint64_t what = any(4);

		nr_wrong += what < 2 ? !try_insert(slot) : what == 2 ? !try_remove(slot) : !try_find(slot);
	}
	is_u64(nr_wrong, 0, "a million inserts, removes and look-ups are answered as the array answers them");
	nr_wrong = 0;
	qsort(slots, NR_SLOTS, sizeof(slots[0]), by_granule);
	lw_blocks_visit(count_wrong_visit, &nr_wrong);
	is_u64(nr_wrong, 0, "a visit shows nothing that is not live");
	for (size_t i = 0; i < NR_SLOTS; i++)
		nr_left += slots[i].is_live;
	is_u64(nr_left, 0, "a visit shows all that is live, once");
}

static bool insert(uintptr_t address, uint64_t bytes, uint32_t site)
{
	struct lw_block block = { .site = site, .bytes = bytes }, stale;
	bool is_stale;

	return lw_blocks_insert(lw_hide((const void *)address), &block, &is_stale, &stale) && !is_stale;
}

static bool has(uintptr_t address, uint64_t bytes, uint32_t site)
{
	struct lw_block block;

	return lw_blocks_find(address, &block) && block.bytes == bytes && block.site == site;
}

static void test_edges(uint32_t shift)
{
	uintptr_t border = UINT64_C(0x600000000000), granule_bytes = (uintptr_t)1 << shift;
	uintptr_t last = border - granule_bytes, top = (UINT64_C(1) << 47) - granule_bytes;
	struct lw_block block;

	(void)lw_blocks_init(shift);
	ok(insert(last, UINT64_C(1) << 40, 7) && insert(border, 5, 8) && has(last, UINT64_C(1) << 40, 7) &&
			has(border, 5, 8),
			"a big block in the last granule of a leaf leaves the next leaf's first alone");
	ok(lw_blocks_remove(last, &block) && block.bytes == UINT64_C(1) << 40 && has(border, 5, 8) &&
			insert(last, 3, 9) && has(last, 3, 9),
			"and goes without a trace");
	ok(insert(top, 1 << 20, 3) && has(top, 1 << 20, 3) && lw_blocks_remove(top, &block),
			"the last granule of all addresses works");
	for (unsigned bit = 47; bit < 64; bit++) {
		uintptr_t address = border | (UINT64_C(1) << bit);

		if (insert(address, 8, 1) || lw_blocks_find(address, &block) ||
				lw_blocks_remove(address, &block) || lw_blocks_add_leaf(address))
			ok(false, "an address with bit %u is refused", bit);
	}
	ok(has(border, 5, 8), "addresses of 2^47 and more are refused, and touch nothing");
	ok(!lw_blocks_find(UINT64_C(0x123456780000), &block) &&
			!lw_blocks_remove(UINT64_C(0x123456780000), &block),
			"where no block ever was there is none");
}

static void test_neighbours(void)
{
	struct lw_block block;
	bool is_good = true;

	(void)lw_blocks_init(4);
	for (uintptr_t i = 0; i < 4096; i++)
		is_good &= insert(0x7000000 + i * 8, 8, (uint32_t)i + 1);
	for (uintptr_t i = 0; i < 4096; i++)
		is_good &= has(0x7000000 + i * 8, 8, (uint32_t)i + 1);
	for (uintptr_t i = 0; i < 4096; i += 2)
		is_good &= lw_blocks_remove(0x7000000 + i * 8, &block);
	for (uintptr_t i = 0; i < 4096; i++)
		is_good &= has(0x7000000 + i * 8, 8, (uint32_t)i + 1) == (i % 2 == 1);
	ok(is_good, "blocks 8 bytes apart do not meet");
}

struct forked {
	uint32_t now;
	uint64_t nr_seen, nr_wrong;
};

static void check_generation(void *context, uintptr_t address, const struct lw_block *block)
{
	struct forked *forked = context;

	(void)address;
	forked->nr_seen++;
	forked->nr_wrong += block->is_inherited != (block->site != forked->now);
}

static void test_forks(void)
{
	struct forked forked = { 0 };
	struct lw_block block;
	bool is_good = true;

	(void)lw_blocks_init(5);
	for (forked.now = 0; forked.now < 14; forked.now++) {
		if (forked.now)
			lw_blocks_fork_child();
		for (uintptr_t i = 0; i < 10; i++)
			is_good &= insert(0x50000000 + forked.now * 0x3000000 + i * (1 << 20),
					i % 2 ? 100 : 1 << 20, forked.now);
		forked.nr_seen = 0;
		lw_blocks_visit(check_generation, &forked);
		is_good &= forked.nr_seen == (forked.now + 1) * 10;
	}
	ok(is_good, "blocks stay through 13 nested forks");
	is_u64(forked.nr_wrong, 0, "and each process knows its own from the inherited ones");
	ok(lw_blocks_remove(0x50000000, &block) && block.is_inherited && block.bytes == 1 << 20,
			"an inherited block is taken out with its size");
}

static void test_birth(void)
{
	uint64_t before = 0;
	bool is_exact = true, is_rising = true, is_near = true, is_inverse = true;

	for (uint64_t ms = 0; ms < 1 << 15; ms++)
		is_exact &= lw_block_birth(ms) == ms && lw_block_birth_ms((uint32_t)ms) == ms;
	ok(is_exact, "births are exact to the millisecond for 32 s");
	for (uint32_t birth = 0; birth <= lw_block_birth(UINT64_MAX); birth++) {
		uint64_t ms = lw_block_birth_ms(birth);

		is_rising &= !birth || ms > before;
		is_inverse &= lw_block_birth(ms) == birth && (!birth || lw_block_birth(ms - 1) == birth - 1);
		/* the last millisecond that is written like this one is at most 1 part in 16384 later */
		is_near &= !birth || ms - 1 - before <= before / 16384;
		before = ms;
	}
	ok(is_rising, "later births are larger numbers");
	ok(is_inverse, "no number is left out or used twice");
	ok(is_near, "a birth is known to 1 part in 16384");
	ok(lw_block_birth(UINT64_MAX) < 1 << LW_BLOCK_BIRTH_BITS, "any time fits");
}

/* ---- blocks that were removed ---- */

static void put(uintptr_t address, uint64_t bytes)
{
	struct lw_block block = { .site = 7, .birth = 3, .bytes = bytes, .family = LW_FAMILY_NEW }, stale;
	bool is_stale;

	if (!lw_blocks_insert(lw_hide((const void *)address), &block, &is_stale, &stale) || is_stale)
		abort();
}

static void take(uintptr_t address)
{
	struct lw_block block;

	if (!lw_blocks_remove(address, &block))
		abort();
}

static void test_removed(uint32_t shift)
{
	const uintptr_t at = UINT64_C(0x600000000000), last = at + (UINT64_C(1) << LW_LEAF_BITS);
	struct lw_block block;

	ok(lw_blocks_init(shift), "tables with granules of %u bytes", 1u << shift);
	ok(!lw_blocks_find_removed(at, &block), "what never was is not known as removed");
	put(at, 24);
	ok(!lw_blocks_find_removed(at, &block), "nor what is there");
	take(at);
	ok(lw_blocks_find_removed(at, &block) && block.site == 7 && block.bytes == 24 &&
			block.family == LW_FAMILY_NEW, "what was removed is, with site, size and family");
	ok(!lw_blocks_find_removed(at + 16, &block) && !lw_blocks_find_removed(at + 8, &block),
			"at its own address only");
	ok(!lw_blocks_find(at, &block) && !lw_blocks_remove(at, &block), "and is no block");
	put(at + 64, 1 << 20);
	ok(!lw_blocks_find_removed(at + 64 + ((uintptr_t)1 << shift), &block), "the size of a big block is none");
	take(at + 64);
	ok(lw_blocks_find_removed(at + 64, &block) && block.bytes == 0, "of a very big one the size is forgotten");
	ok(!lw_blocks_find_removed(at + 64 + ((uintptr_t)1 << shift), &block), "and leaves nothing behind");
	for (uint64_t bytes = 1024; bytes < 1000000; bytes *= 5) {
		const uintptr_t beside = at + (UINT64_C(8) << 20) + bytes * 4;

		put(beside, bytes);
		take(beside);
		ok(lw_blocks_find_removed(beside, &block) && block.bytes == bytes && block.site == 7,
				"of one of %" PRIu64 " bytes it is known", bytes);
	}
	put(at + 64, 300000);
	take(at + 64);
	ok(lw_blocks_find_removed(at + 64, &block) && block.bytes == 300000 && block.family == LW_FAMILY_NEW &&
					!lw_blocks_find_removed(at + 64 + ((uintptr_t)1 << shift), &block),
			"the same among small ones");
	put(at + 512, 24);
	take(at + 512);
	put(at + 256, 1000);
	ok(!lw_blocks_find_removed(at + 512, &block), "where another block reaches over it it is not known");
	take(at + 256);
	ok(lw_blocks_find_removed(at + 512, &block), "and is again when that is gone");
	lw_blocks_forget(at + 512);
	ok(!lw_blocks_find_removed(at + 512, &block), "forgotten is forgotten");
	put(last - 4096, 1 << 20);
	put(last + 4096, 24);
	take(last - 4096);
	take(last + 4096);
	put(last - 8192, 1 << 20);
	ok(!lw_blocks_find_removed(last + 4096, &block), "a block of the leaf before may reach over it");
	put(last, 8);
	take(last);
	put(last, 8);
	ok(lw_blocks_find(last, &block), "the first word of a leaf is put and taken like others");
}

/* ---- what the table takes ---- */

/* Of each byte of a heap of such blocks, one after the other. */
static double taken(uint64_t bytes, size_t nr)
{
	const uintptr_t base = UINT64_C(0x560000000010);
	uint64_t before;
	size_t nr_wrong = 0;

	(void)lw_blocks_init(5);
	before = lw_mem_used_bytes();
	for (size_t i = 0; i < nr; i++)
		nr_wrong += !insert(base + i * bytes, bytes - 8, (uint32_t)i);
	for (size_t i = 0; i < nr; i++)
		nr_wrong += !has(base + i * bytes, bytes - 8, (uint32_t)i);
	is_u64(nr_wrong, 0, "blocks of %" PRIu64 " bytes are all there", bytes);
	return (double)(lw_mem_used_bytes() - before) / (double)(nr * bytes);
}

static void test_memory(void)
{
	double small = taken(32, 1 << 20), middle = taken(1040, 1 << 15), large = taken(64 << 10, 1 << 10);

	ok(small < 0.26, "of a heap of 32-byte blocks the table takes %.3f", small);
	ok(middle < 0.04, "of one of 1 KiB blocks %.3f", middle);
	ok(large < 0.04, "of one of 64 KiB blocks %.3f", large);
}

int main(void)
{
	test_memory();
	test_removed(4);
	test_removed(5);
	test_random(5);
	test_random(4);
	test_edges(5);
	test_edges(4);
	test_neighbours();
	test_forks();
	test_birth();
	return done();
}
