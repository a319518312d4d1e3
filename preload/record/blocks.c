/* SPDX-License-Identifier: MIT */
/* blocks.c - the block table where it is not the one load and store of blocks.h; see there. */
#include "preload/record/blocks.h"

#include "preload/base/mem.h"
#include "preload/record/blocks_visit.h"

enum {
	LEAST_COARSE = 1024, /* never meet in a coarse word; and where most are small, the first is seldom of this size */
	HEADS_AT_ONCE = 31, /* two pages */
};

/* Used at the end of the process, or by a fork's one thread. */
static struct lw_blocks_room own_room LW_ROOM;

/* Values of the fork bits that blocks in the table may have. */
static uint32_t used_epochs;

/* ---- leaves ---- */

/* Leaves are small, so many come from one mapping. Taken by adding to `nr`, past the end too. */
struct heads {
	uint32_t nr;
	struct lw_leaf leaves[HEADS_AT_ONCE];
};
_Static_assert(sizeof(struct heads) == 8192, "no part of a page is wasted");
static struct heads *heads; /* release: its pages are there */

static size_t fine_words(void)
{
	return (size_t)1 << (LW_LEAF_BITS - lw_hot.granule_shift);
}

bool lw_blocks_init(uint32_t granule_shift)
{
	lw_hot.granule_shift = granule_shift;
	lw_hot.half_bit = granule_shift == 5 ? 1 << LW_BLOCK_HALF_AT : 0;
	lw_hot.epoch_bits = 0;
	used_epochs = 1;
	heads = NULL;
	lw_hot.roots[0] = lw_mem_map(LW_BLOCKS_ROOT_BYTES, "leakwatch blocks");
	lw_hot.roots[1] = lw_hot.roots[0] + ((size_t)1 << LW_ROOT_BITS);
	return lw_hot.roots[0] != NULL;
}

static struct lw_leaf *take_head(void)
{
	struct heads *now = lw_load_acquire(&heads), *next;
	uint32_t at;

	for (;;) {
		at = now ? __atomic_fetch_add(&now->nr, 1, __ATOMIC_RELAXED) : HEADS_AT_ONCE;
		if (at < HEADS_AT_ONCE)
			return &now->leaves[at];
		next = lw_mem_map(sizeof(*next), "leakwatch blocks");
		if (!next)
			return NULL;
		if (__atomic_compare_exchange_n(&heads, &now, next, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
			now = next;
		else
			lw_mem_unmap(next, sizeof(*next));
	}
}

LW_COLD struct lw_leaf *lw_blocks_add_leaf(uintptr_t address)
{
	struct lw_leaf **root = lw_hot.roots[address >> 3 & 1], **slot, *leaf, *other = NULL;
	/* a big block in the last word looks one further */
	size_t words = LW_COARSE_WORDS + LW_BLOCK_PAGE_WORDS + fine_words() + 1;
	uint64_t *start;

	if (address >> 47)
		return NULL;
	slot = &root[address >> LW_LEAF_BITS];
	leaf = take_head();
	start = leaf ? lw_mem_map(words * sizeof(uint64_t), "leakwatch blocks") : NULL;
	if (!start)
		return NULL;
	lw_store(&leaf->fine, start + LW_COARSE_WORDS + LW_BLOCK_PAGE_WORDS);
	if (__atomic_compare_exchange_n(slot, &other, leaf, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		return leaf;
	lw_mem_unmap(start, words * sizeof(uint64_t)); /* the head is not worth taking back */
	return other;
}

/* The form of 64 KiB, after it was asked for this one; what it was is answered if that already does. */
static uint32_t set_form(uint8_t *at, uint32_t wanted)
{
	uint8_t now = LW_FORM_NONE;

	while (!__atomic_compare_exchange_n(at, &now, (uint8_t)wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		if (now != LW_FORM_COARSE || wanted != LW_FORM_MIXED)
			return now;
	}
	return wanted;
}

/* ---- coarse words ---- */

static const uint64_t coarse_place = UINT64_C(7) << LW_COARSE_PLACE_AT | 1 << LW_BLOCK_HALF_AT;

/* Bits 4 to 7 of an address, at their places in a coarse word, and back. */
static uint64_t pack_place(uintptr_t address)
{
	return (uint64_t)(address >> 5 & 7) << LW_COARSE_PLACE_AT | (address >> 4 & 1) << LW_BLOCK_HALF_AT;
}

static bool is_here(uint64_t word, uint64_t place)
{
	return !lw_block_is_size(word) && (word & coarse_place) == place;
}

/* Takes the word for a block, if no other block has it. */
static bool put_coarse(uint64_t *at, uint64_t before, uint64_t place, const struct lw_block *block)
{
	bool is_big = block->bytes >= LW_COARSE_BIG;
	uint64_t word = lw_block_pack_head(block) | place |
			(is_big ? (uint64_t)LW_COARSE_BIG : block->bytes) << LW_BLOCK_SIZE_AT;

	if (is_big) /* first: who looks for all blocks meanwhile reads it. If another has the word, it is not so big. */
		lw_store(&at[1], LW_BLOCK_SIZE_WORD | block->bytes << 1);
	if (__atomic_compare_exchange_n(at, &before, word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return true;
	if (is_big)
		lw_store(&at[1], 0);
	return false;
}

static void take_coarse(uint64_t *at, uint64_t word)
{
	if (lw_coarse_is_big(word)) {
		word = lw_block_removed_big(word, lw_block_size_after(at));
		lw_store(&at[1], 0);
	}
	lw_store(at, word & ~(uint64_t)LW_BLOCK_PRESENT);
}

/*
 * The word a new block wants is in use: a release was not seen. Takes out the record that is there, or the big
 * block before it whose size is kept there.
 */
static bool take_stale_coarse(uint64_t *at, uint64_t place, struct lw_block *stale)
{
	uint64_t word = lw_load(at);

	if (lw_block_is_size(word)) /* never in the first word of a leaf */
		word = lw_load(--at);
	else if (!is_here(word, place)) /* a neighbour */
		return false;
	if (!(word & LW_BLOCK_PRESENT))
		return false;
	*stale = lw_coarse_unpack(at, word);
	take_coarse(at, word);
	lw_store(at, 0);
	return true;
}

/* ---- fine words ---- */

static bool is_big(uint64_t word)
{
	return (word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG) == LW_BLOCK_BIG;
}

static bool take_stale_fine(uint64_t *at, struct lw_block *stale)
{
	uint64_t word = lw_load(at);

	if (lw_block_is_size(word)) /* never in the first word of a leaf */
		word = lw_load(--at);
	if (!(word & LW_BLOCK_PRESENT))
		return false;
	*stale = lw_block_unpack(at, word);
	if (is_big(word))
		lw_store(&at[1], 0);
	lw_store(at, 0);
	return true;
}

static bool is_fine(uint64_t word, uintptr_t address)
{
	return !lw_block_is_size(word) && (word & lw_hot.half_bit) == lw_block_half(address);
}

/* ---- either ---- */

/* A word that tells of exactly this address: of the block there, or of one that was removed. */
struct found {
	uint64_t *at; /* NULL: none */
	uint64_t word;
	bool is_coarse;
};

static struct found find(uintptr_t address)
{
	struct lw_leaf *leaf = lw_hot.roots[0] ? lw_block_leaf(address) : NULL;
	uint32_t form = leaf ? lw_load(lw_block_form(leaf, address)) : LW_FORM_NONE;
	struct found fine = { NULL, 0, false }, coarse = { NULL, 0, true };

	if (form == LW_FORM_FINE || form == LW_FORM_MIXED) {
		fine.at = lw_block_fine(leaf, address);
		fine.word = lw_load(fine.at);
		if (!fine.word || !is_fine(fine.word, address))
			fine.at = NULL;
	}
	if ((fine.at && fine.word & LW_BLOCK_PRESENT) || form < LW_FORM_COARSE)
		return fine;
	coarse.at = lw_coarse_word(leaf, address);
	coarse.word = lw_load(coarse.at);
	if (!coarse.word || !is_here(coarse.word, pack_place(address)))
		coarse.at = NULL;
	return coarse.at && (!fine.at || coarse.word & LW_BLOCK_PRESENT) ? coarse : fine;
}

static struct lw_block unpack(const struct found *found)
{
	return found->is_coarse ? lw_coarse_unpack(found->at, found->word) : lw_block_unpack(found->at, found->word);
}

bool lw_blocks_find(uintptr_t address, struct lw_block *block)
{
	struct found found = find(address);

	if (!found.at || !(found.word & LW_BLOCK_PRESENT))
		return false;
	*block = unpack(&found);
	return true;
}

bool lw_blocks_remove(uintptr_t address, struct lw_block *block)
{
	struct found found = find(address);

	if (!found.at || !(found.word & LW_BLOCK_PRESENT))
		return false;
	*block = unpack(&found);
	if (found.is_coarse) {
		take_coarse(found.at, found.word);
		return true;
	}
	if (is_big(found.word)) {
		found.word = lw_block_removed_big(found.word, block->bytes);
		lw_store(&found.at[1], 0);
	}
	lw_store(found.at, found.word & ~(uint64_t)LW_BLOCK_PRESENT);
	return true;
}

/* False: not a block for the coarse words here. */
static bool insert_coarse(struct lw_leaf *leaf, struct lw_hidden hidden, const struct lw_block *block, bool *is_stale,
		struct lw_block *stale)
{
	uint8_t *form = lw_block_form(leaf, lw_reveal(hidden));
	uint32_t now = lw_load(form);
	uint64_t *at, before;

	if (now == LW_FORM_NONE)
		now = set_form(form, block->bytes >= LEAST_COARSE ? LW_FORM_COARSE : LW_FORM_FINE);
	if (now == LW_FORM_FINE)
		return false;
	at = lw_coarse_word(leaf, lw_reveal(hidden));
	if (lw_block_is_held(lw_load(at)))
		*is_stale = take_stale_coarse(at, pack_place(lw_reveal(hidden)), stale);
	before = lw_load(at);
	if (now == LW_FORM_COARSE && !lw_block_is_held(before) && put_coarse(at, before, pack_place(lw_reveal(hidden)), block))
		return true;
	if (now == LW_FORM_COARSE)
		(void)set_form(form, LW_FORM_MIXED);
	return false;
}

/* The address is made anew wherever it is needed, and given to no other function: see hidden.h. */
bool lw_blocks_insert(struct lw_hidden hidden, const struct lw_block *block, bool *is_stale, struct lw_block *stale)
{
	struct lw_leaf *leaf = lw_block_leaf(lw_reveal(hidden));
	uint64_t *at;

	*is_stale = false;
	if (LW_UNLIKELY(!leaf)) {
		leaf = lw_blocks_add_leaf(lw_reveal(hidden) & ~((UINT64_C(1) << LW_LEAF_BITS) - 1 - 8));
		if (!leaf)
			return false;
	}
	if (insert_coarse(leaf, hidden, block, is_stale, stale))
		return true;
	at = lw_block_fine(leaf, lw_reveal(hidden));
	if (lw_block_is_held(lw_load(at)) && take_stale_fine(at, stale))
		*is_stale = true;
	if (block->bytes >= LW_BLOCK_BIG)
		lw_store(&at[1], LW_BLOCK_SIZE_WORD | block->bytes << 1);
	lw_store(at, lw_block_pack_head(block) | lw_block_half(lw_reveal(hidden)) |
			(block->bytes < LW_BLOCK_BIG ? block->bytes : LW_BLOCK_BIG) << LW_BLOCK_SIZE_AT);
	return true;
}

/* ---- in the order of addresses ---- */

struct last {
	uintptr_t before; /* blocks that start here or further on do not count */
	uintptr_t start, end;
};

static void note_last(void *context, uintptr_t address, uint64_t *at, bool is_coarse)
{
	struct last *last = context;

	if (address < last->before) {
		last->start = address;
		last->end = address + lw_blocks_unpack(at, is_coarse).bytes;
	}
}

/*
 * Does a live block that starts before this address reach over it? Blocks do not overlap, so the
 * nearest one before it decides. Looks as far back as its leaf begins, and through the leaf before.
 */
static bool is_covered(uintptr_t address)
{
	const uintptr_t leaf_bytes = (uintptr_t)1 << LW_LEAF_BITS, table = address & 8;
	uintptr_t start = address & ~(leaf_bytes - 1), at = address | (LW_COARSE_BYTES - 1);
	struct last last = { .before = address };

	start = start < leaf_bytes ? start : start - leaf_bytes;
	for (;;) {
		/* the address's own bit 3 chooses the table */
		struct lw_leaf *leaf = lw_block_leaf((at & ~(uintptr_t)8) | table);
		uint32_t form = leaf ? lw_load(lw_block_form(leaf, at)) : LW_FORM_NONE;
		uintptr_t passed = leaf ? form ? LW_COARSE_BYTES : LW_FORM_BYTES : leaf_bytes;

		if (form) {
			struct lw_stretch stretch = lw_stretch_at(leaf, at, form);

			lw_stretch_visit(&stretch, table, note_last, &last);
			if (last.start)
				return last.end > address;
		}
		at &= ~(passed - 1);
		if (at <= start)
			return false;
		at--;
	}
}

bool lw_blocks_find_removed(uintptr_t address, struct lw_block *block)
{
	struct found found = find(address);

	if (!found.at || found.word & LW_BLOCK_PRESENT || is_covered(address))
		return false;
	*block = lw_block_unpack_head(found.word);
	block->is_inherited = false;
	block->bytes = found.word >> LW_BLOCK_SIZE_AT & (found.is_coarse ? LW_COARSE_BIG : LW_BLOCK_BIG);
	if (block->bytes == (found.is_coarse ? LW_COARSE_BIG : LW_BLOCK_BIG))
		block->bytes = block->birth;
	block->birth = 0;
	return true;
}

void lw_blocks_forget(uintptr_t address)
{
	struct found found = find(address);

	while (found.at && !(found.word & LW_BLOCK_PRESENT)) { /* both may remember one */
		uint64_t word = found.word;

		if (!__atomic_compare_exchange_n(found.at, &word, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return; /* a neighbour came to the coarse word */
		found = find(address);
	}
}

/* ---- all of them ---- */

struct block_visit {
	lw_blocks_visit_fn *visit;
	void *context;
};

static void visit_block(void *context, uintptr_t address, uint64_t *at, bool is_coarse)
{
	const struct block_visit *to = context;
	struct lw_block block = lw_blocks_unpack(at, is_coarse);

	to->visit(to->context, address, &block);
}

void lw_blocks_visit_in(struct lw_blocks_room *room, lw_blocks_visit_fn *visit, void *context)
{
	struct block_visit to = { visit, context };

	if (lw_hot.roots[0])
		lw_blocks_visit_words(room, visit_block, &to);
}

void lw_blocks_visit(lw_blocks_visit_fn *visit, void *context)
{
	lw_blocks_visit_in(&own_room, visit, context);
}

static void set_epoch(void *context, uintptr_t address, uint64_t *at, bool is_coarse)
{
	const uint64_t *bits = context;

	(void)address;
	(void)is_coarse;
	lw_store(at, (lw_load(at) & ~(UINT64_C(3) << LW_BLOCK_FORKS_AT)) | *bits << LW_BLOCK_FORKS_AT);
}

void lw_blocks_fork_child(void)
{
	uint64_t oldest = 0;
	uint32_t next;

	if (used_epochs == 0xf) { /* the fourth fork in a row without exec: renumber all blocks */
		lw_blocks_visit_words(&own_room, set_epoch, &oldest);
		used_epochs = 1;
	}
	for (next = 0; used_epochs >> next & 1; next++)
		;
	used_epochs |= 1u << next;
	lw_hot.epoch_bits = next;
}

void lw_blocks_disown(uintptr_t address)
{
	struct found found = find(address);
	uint64_t parents = lw_hot.epoch_bits - 1; /* a child's bits are one above its parent's, or 1 */

	if (lw_hot.epoch_bits && found.at && found.word & LW_BLOCK_PRESENT)
		set_epoch(&parents, address, found.at, found.is_coarse);
}
