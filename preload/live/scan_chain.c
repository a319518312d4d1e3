/* SPDX-License-Identifier: MIT */
/*
 * scan_chain.c - choosing examples and finding the way back to their roots; see scan_chain.h.
 *
 * Marking goes by distance from the roots and keeps for each block the one it was first met in, so
 * following those back is a shortest way. Where in a root the first pointer stands is not kept: the roots
 * are swept once more for the few blocks that are asked for.
 */
#include "preload/live/scan_chain.h"

#include <string.h>

#include "preload/live/scan_place.h"
#include "preload/record/blocks.h"

enum {
	NR_LOST = 24,
	NR_YOUNG = 20,
	NR_LARGE = 12,
	A_SITE = 2,	    /* examples */
	LOOKED_AT = 4096,   /* blocks of a site, in search of the youngest */
	MOMENT = 16,	    /* the last of so many parts of the run */
	MOST_WAY = 1 << 24, /* owners of one block */
	LONG_WAY = 1 << 20, /* of a site whose first example is so far from the roots there is no second: a long list */
	KEPT = LW_CHAIN_OWNERS + 1,
};

struct choice {
	uint32_t site;
	bool is_lost;
	uint32_t nr_found, nr_seen;
	uint32_t entries[A_SITE];
	uint32_t ranks[A_SITE];
};

struct search {
	const struct lw_scan_examples *examples;
	struct lw_chain *chains;
	uint32_t tops[LW_MAX_CHAINS]; /* the entry a root points to, by chain */
	struct lw_words words; /* those entries */
	uint32_t nr, nr_left;
};

/* ---- which sites ---- */

static uint64_t weight(const struct lw_scan_examples *examples, uint32_t site, int by)
{
	if (by == 0)
		return examples->sites[site].lost_bytes;
	return by == 1 ? examples->tallies[site].young_bytes : examples->tallies[site].bytes;
}

static bool is_chosen(const struct choice *choices, uint32_t nr, uint32_t site, bool is_lost)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (choices[i].site == site && choices[i].is_lost == is_lost)
			return true;
	}
	return false;
}

static bool is_heavier(const struct lw_scan_examples *examples, uint32_t site, uint32_t other, int by)
{
	uint64_t one = weight(examples, site, by), two = weight(examples, other, by);

	return one > two || (one == two && site < other);
}

/* The `nr` of them since `first` are the heaviest so far, heaviest first; `most` are kept. */
static uint32_t consider(const struct lw_scan_examples *examples, struct choice *choices, uint32_t first, uint32_t nr,
		uint32_t most, uint32_t site, int by)
{
	uint32_t at = nr;

	if (!weight(examples, site, by) ||
			(nr == first + most && !is_heavier(examples, site, choices[nr - 1].site, by)) ||
			is_chosen(choices, first, site, by == 0))
		return nr;
	if (nr == first + most)
		at = nr - 1;
	else
		nr++;
	for (; at > first && is_heavier(examples, site, choices[at - 1].site, by); at--)
		choices[at] = choices[at - 1];
	choices[at] = (struct choice){ .site = site, .is_lost = by == 0 };
	return nr;
}

static uint32_t choose(const struct lw_scan_examples *examples, struct choice *choices, uint32_t first, uint32_t most, int by)
{
	uint32_t nr = first;

	for (uint32_t i = 0; by == 0 && i < examples->marks->nr_lost_sites; i++)
		nr = consider(examples, choices, first, nr, most, examples->marks->lost_sites[i], by);
	for (uint32_t site = 0; by != 0 && site < examples->nr_sites; site++)
		nr = consider(examples, choices, first, nr, most, site, by);
	return nr;
}

/* ---- which blocks ---- */

static uint32_t birth_of(const struct lw_scan_entry *entry)
{
	struct lw_block block = { 0 };

	(void)lw_blocks_find(lw_scan_start(entry), &block);
	return block.birth;
}

static bool is_full(const struct choice *choice)
{
	return choice->nr_seen >= LOOKED_AT;
}

/*
 * The youngest ones are kept: of a site that grows they show what it grows by. But those of the last moment
 * come last, because something on a stack still points to them.
 */
static void offer(struct choice *choice, const struct lw_scan_entry *entry, uint32_t at, uint32_t last_birth)
{
	uint32_t rank, slot;

	choice->nr_seen++;
	rank = birth_of(entry);
	rank = rank > last_birth ? 0 : rank + 1;
	slot = choice->nr_found < A_SITE ? choice->nr_found++ : A_SITE - 1;
	if (choice->nr_seen > A_SITE && rank <= choice->ranks[slot])
		return;
	for (; slot > 0 && choice->ranks[slot - 1] < rank; slot--) {
		choice->ranks[slot] = choice->ranks[slot - 1];
		choice->entries[slot] = choice->entries[slot - 1];
	}
	choice->ranks[slot] = rank;
	choice->entries[slot] = at;
}

static void look_for_blocks(const struct lw_scan_examples *examples, struct choice *choices, uint32_t nr,
		const uint8_t *places)
{
	const struct lw_scan_index *index = &examples->marks->index;
	uint32_t last_birth = lw_block_birth(examples->now_ms - examples->now_ms / MOMENT), nr_open = nr;

	for (uint32_t at = 0; at < index->nr && nr_open; at++) {
		const struct lw_scan_entry *entry = &index->entries[at];
		bool is_lost = !(entry->start & LW_SCAN_REACHED);

		if (entry->start & LW_SCAN_UNJUDGED || lw_scan_site(entry) >= examples->nr_sites ||
				!places[lw_scan_site(entry)] || (is_lost && !(entry->start & LW_SCAN_LEADER)))
			continue;
		for (uint32_t i = 0; i < nr; i++) {
			if (choices[i].site != lw_scan_site(entry) || choices[i].is_lost != is_lost || is_full(&choices[i]))
				continue;
			offer(&choices[i], entry, at, last_birth);
			nr_open -= is_full(&choices[i]);
		}
	}
}

/* ---- the way ---- */

static const struct lw_scan_entry *entry_at(const struct search *search, uint32_t at)
{
	return &search->examples->marks->index.entries[at];
}

/* Where in the memory of an owner the pointer to the next one is. */
static uint32_t pointer_in(const struct search *search, uint32_t owner, uint32_t next)
{
	const struct lw_scan_index *index = &search->examples->marks->index;
	const struct lw_scan_entry *entry = &index->entries[owner];
	uintptr_t start = lw_scan_start(entry), end = start + lw_scan_bytes(entry);
	const struct lw_map *map = lw_maps_at(&search->examples->marks->maps, start);
	uint64_t first = lw_scan_start(&index->entries[next]), reach = lw_scan_bytes(&index->entries[next]) + LW_SCAN_LEAST_REACH;

	if (!map || start < map->start || !(map->flags & LW_MAP_READ) || map->flags & (LW_MAP_FILE | LW_MAP_SHARED))
		return LW_NO_OWNER;
	end = end < map->end ? end : map->end;
	for (uintptr_t at = LW_ALIGN_UP(start, (uintptr_t)4); at + 8 <= end && at - start < UINT32_MAX; at += 4) {
		uint64_t word;

		memcpy(&word, (const void *)at, sizeof(word));
		if ((word & LW_SCAN_ADDRESS) - first <= reach &&
				lw_scan_index_find(index, word & LW_SCAN_ADDRESS) == next)
			return (uint32_t)(at - start);
	}
	return LW_NO_OWNER;
}

static void put_owner(const struct search *search, struct lw_chain *chain, uint32_t place, uint32_t owner, uint32_t next)
{
	const struct lw_scan_entry *entry = entry_at(search, owner);
	uint32_t left_out = chain->nr_owners > LW_CHAIN_OWNERS ? chain->nr_owners - LW_CHAIN_OWNERS : 0;

	if (place >= LW_CHAIN_HEAD_OWNERS && place < LW_CHAIN_HEAD_OWNERS + left_out)
		return;
	place -= place >= LW_CHAIN_HEAD_OWNERS ? left_out : 0;
	chain->owners[place] = (struct lw_owner){ entry->start & LW_SCAN_UNOWNED ? LW_NO_OWNER : lw_scan_site(entry),
		pointer_in(search, owner, next) };
}

/*
 * Back from the block to what a root points to; that is returned. The way may be as long as a list: it is gone once, and of
 * the owners met last, which are named first, the last few are kept.
 */
static uint32_t go_back(const struct search *search, struct lw_chain *chain, uint32_t block)
{
	const uint32_t *parents = search->examples->marks->parents;
	uint32_t near[KEPT] = { block }, far[KEPT] = { block }, at = block, nr = 0;

	while (parents[at] != LW_SCAN_NOTHING && nr < MOST_WAY) {
		at = parents[at];
		far[++nr % KEPT] = at;
		if (nr < KEPT)
			near[nr] = at;
	}
	chain->nr_owners = nr;
	for (uint32_t i = 1; i <= nr && i < KEPT; i++) {
		uint32_t way = i <= LW_CHAIN_OWNERS - LW_CHAIN_HEAD_OWNERS ? i : nr - (KEPT - 1 < nr ? KEPT - 1 : nr) + i;
		const uint32_t *met = way < KEPT ? near : far;

		put_owner(search, chain, nr - way, met[way % KEPT], met[(way - 1) % KEPT]);
	}
	return at;
}

static void want(struct search *search, struct lw_scan_entry *top)
{
	top->start |= LW_SCAN_WANTED;
	lw_words_add(&search->words, lw_scan_start(top), lw_scan_start(top) + lw_scan_bytes(top));
	search->nr_left++;
}

static void begin_chain(struct search *search, const struct choice *choice, uint32_t number)
{
	struct lw_chain *chain = &search->chains[search->nr];
	uint32_t at = choice->entries[number];
	const struct lw_scan_entry *entry = entry_at(search, at);
	const struct lw_map *map = lw_maps_at(&search->examples->marks->maps, lw_scan_start(entry));
	uint64_t born_ms = lw_block_birth_ms(birth_of(entry)), bytes = lw_scan_bytes(entry), word;

	memset(chain, 0, sizeof(*chain));
	chain->site = choice->site;
	chain->address = lw_scan_start(entry);
	chain->bytes = bytes;
	chain->age_ms = born_ms < search->examples->now_ms ? (uint32_t)(search->examples->now_ms - born_ms) : 0;
	chain->place.module = chain->type.module = LW_NO_MODULE;
	bytes = bytes < LW_FIRST_BYTES ? bytes : LW_FIRST_BYTES;
	if (map && chain->address >= map->start && chain->address + bytes <= map->end && map->flags & LW_MAP_READ) {
		memcpy(chain->first, (const void *)chain->address, bytes);
		chain->nr_first = (uint32_t)bytes;
	}
	memcpy(&word, chain->first, sizeof(word));
	(void)lw_scan_place_find(chain->nr_first >= sizeof(word) ? word : 0, &chain->type);
	search->tops[search->nr] = LW_SCAN_NOTHING;
	if (!choice->is_lost) {
		chain->root = LW_ROOT_UNKNOWN;
		search->tops[search->nr] = go_back(search, chain, at);
		want(search, &search->examples->marks->index.entries[search->tops[search->nr]]);
	}
	search->nr++;
}

/* ---- the roots ---- */

static bool is_wanted(const struct search *search, uint64_t word, uint32_t *at)
{
	const struct lw_scan_index *index = &search->examples->marks->index;
	const struct lw_scan_entry *entry;

	*at = lw_scan_index_find(index, word & LW_SCAN_ADDRESS);
	if (*at == LW_SCAN_NOTHING)
		return false;
	entry = &index->entries[*at];
	/* one past its end is where the next begins, and in the allocator's data that is what is meant */
	return entry->start & LW_SCAN_WANTED && (word & LW_SCAN_ADDRESS) - lw_scan_start(entry) <
							lw_scan_bytes(entry) + !lw_scan_bytes(entry);
}

static void note_root(struct search *search, uint32_t at, uintptr_t address, const struct lw_scan_thread *thread)
{
	for (uint32_t i = 0; i < search->nr; i++) {
		struct lw_chain *chain = &search->chains[i];

		if (search->tops[i] != at || chain->root != LW_ROOT_UNKNOWN)
			continue;
		if (thread) {
			chain->root = LW_ROOT_REGISTER;
			chain->tid = thread->tid;
			(void)lw_scan_place_find(thread->frame[LW_REG_PC], &chain->place);
		} else {
			lw_scan_place_root(&search->examples->marks->maps, &search->examples->roots->threads, address, chain);
		}
		search->nr_left--;
	}
	search->examples->marks->index.entries[at].start &= ~LW_SCAN_WANTED;
}

static void look_at(void *context, uint64_t word, uintptr_t at)
{
	struct search *search = context;
	uint32_t entry;

	if (search->nr_left && is_wanted(search, word, &entry))
		note_root(search, entry, at, NULL);
}

static void look(void *context, uintptr_t from, uintptr_t to)
{
	const struct search *search = context;

	if (search->nr_left)
		lw_words_visit(&search->words, from, to, look_at, context);
}

static void look_in_registers(struct search *search)
{
	const struct lw_scan_threads *threads = &search->examples->roots->threads;
	uint32_t entry;

	for (size_t i = 0; search->nr_left && i < threads->nr_known; i++) {
		for (uint32_t k = 0; k < threads->known[i].nr_regs; k++) {
			if (is_wanted(search, threads->known[i].regs[k], &entry))
				note_root(search, entry, 0, &threads->known[i]);
		}
	}
}

uint32_t lw_scan_chains_find(const struct lw_scan_examples *examples, struct lw_chain *chains)
{
	static struct choice choices[NR_LOST + NR_YOUNG + NR_LARGE];
	static struct search search;
	uint8_t *places = lw_scan_room(examples->nr_sites + 1);
	uint32_t nr = choose(examples, choices, 0, NR_LOST, 0);

	if (!places)
		return 0;
	if (examples->has_holders) {
		nr = choose(examples, choices, nr, NR_YOUNG, 1);
		nr = choose(examples, choices, nr, NR_LARGE, 2);
	}
	for (uint32_t i = 0; i < nr; i++)
		places[choices[i].site] = 1;
	if (nr)
		look_for_blocks(examples, choices, nr, places);
	search = (struct search){ .examples = examples, .chains = chains };
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t k = 0; k < choices[i].nr_found && search.nr < LW_MAX_CHAINS; k++) {
			begin_chain(&search, &choices[i], k);
			if (chains[search.nr - 1].nr_owners >= LONG_WAY)
				break;
		}
	}
	lw_words_look(&search.words);
	if (search.nr_left)
		lw_scan_roots_visit(examples->roots, &examples->marks->maps, look, &search);
	look_in_registers(&search);
	return search.nr;
}
