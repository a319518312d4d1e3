/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - address -> (site, size, birth): the address-indexed table of live blocks.
 *
 * Two levels: a root of pointers, one per 16 MiB of address space, and leaves of 64-bit words, one for
 * each block. Addresses that are 8 but not 16-aligned, which some allocators give to tiny blocks, live
 * in a second table of the same shape, so that two 8-byte blocks never meet in one granule.
 *
 * A leaf has its words twice, in memory that exists only where it was written to:
 * - fine: a word per granule. A granule is 32 bytes where the next allocator is glibc's (whose chunks are
 *   at least 32 bytes, 16-aligned, so that at most one block starts in each; one bit says in which
 *   half), else 16.
 * - coarse: a word per 256 bytes, with four bits that say where in them the block starts. An eighth of the
 *   memory, for blocks that are so large that two never start in one word.
 * Which of them is in use, a byte says for each 64 KiB. The first block there decides, by its size. Where two then
 * do come to one coarse word, new blocks are fine from there on, and both are looked at ("mixed").
 *
 * Each call is one load and one store of the fine word. No atomic exchange is needed: only
 * the owner of a block inserts or removes it, and the allocator's own synchronisation orders a
 * block's removal before its address is handed out again (the record is removed before the real
 * free). Words are relaxed atomics, because a scan may read them at any time. A coarse word two blocks may want at
 * once: it is taken by compare and swap, and whoever comes second goes to the fine ones.
 *
 * A block whose size has no room in its word (256 KiB in a fine, 32 KiB in a coarse one) keeps it in the next
 * word, which it covers itself.
 */
#ifndef LW_RECORD_BLOCKS_H
#define LW_RECORD_BLOCKS_H

#include "preload/base/base.h"
#include "preload/base/hot.h"
#include "preload/record/hidden.h"

enum lw_family {
	LW_FAMILY_MALLOC,
	LW_FAMILY_NEW,
	LW_FAMILY_NEW_ARRAY,
	LW_FAMILY_NEW_ALIGNED, /* new or new[] with an alignment: which, and how much, its site tells */
};

/*
 * The word: present 1 | half 1 | family 2 | forks 2 | site 20 | size 18 | birth 20, lowest bits first.
 * With a present bit of 0 it is the size of a big block, if the upper 16 bits are ones (a birth that
 * no clock reaches); else a block that was removed, kept until another comes to its granule: that is
 * how a second release of it is told from the release of what was never ours. Of a big one the size then
 * stands where the birth was, if there is room for it.
 */
enum {
	LW_BLOCK_PRESENT = 1,
	LW_BLOCK_HALF_AT = 1,
	LW_BLOCK_FAMILY_AT = 2,
	LW_BLOCK_FORKS_AT = 4,
	LW_BLOCK_SITE_AT = 6,
	LW_BLOCK_SITE_BITS = 20,
	LW_BLOCK_SIZE_AT = 26,
	LW_BLOCK_SIZE_BITS = 18,
	LW_BLOCK_BIRTH_AT = 44,
	LW_BLOCK_BIRTH_BITS = 20,
	LW_BLOCK_BIG = (1 << LW_BLOCK_SIZE_BITS) - 1, /* size is in the next word */
	/* a coarse word's size is shorter, for three more bits of where the block starts */
	LW_COARSE_SIZE_BITS = 15,
	LW_COARSE_BIG = (1 << LW_COARSE_SIZE_BITS) - 1,
	LW_COARSE_PLACE_AT = LW_BLOCK_SIZE_AT + LW_COARSE_SIZE_BITS,
	LW_COARSE_SHIFT = 8, /* log2 of the bytes a coarse word is for */
	LW_LEAF_BITS = 24,
	LW_FORM_SHIFT = 16, /* log2 of the bytes that have one form */
	LW_LEAF_FORMS = 1 << (LW_LEAF_BITS - LW_FORM_SHIFT),
	LW_COARSE_WORDS = 1 << (LW_LEAF_BITS - LW_COARSE_SHIFT),
	LW_ROOT_BITS = 47 - LW_LEAF_BITS,
	LW_MAX_BLOCK_SITES = 1 << LW_BLOCK_SITE_BITS,
	LW_BLOCK_LAST_BIRTH = (1 << LW_BLOCK_BIRTH_BITS) - 17, /* whose upper 16 bits are not all ones */
};

_Static_assert(LW_COARSE_PLACE_AT + 3 == LW_BLOCK_BIRTH_AT, "all bits of a coarse word are used");

#define LW_TOP_ADDRESS ((UINT64_C(1) << 47) - 1)
#define LW_BLOCK_SIZE_WORD (UINT64_C(0xffff) << 48)

/* Where the records of 64 KiB are. Only ever: none, then fine; or none, coarse, mixed. A bit for each sort of word. */
enum { LW_FORM_NONE, LW_FORM_FINE = 1, LW_FORM_COARSE = 2, LW_FORM_MIXED = LW_FORM_FINE | LW_FORM_COARSE };

struct lw_leaf {
	uint64_t *fine; /* relaxed: written before the leaf is seen; before it, LW_COARSE_WORDS and a page: the coarse ones */
	uint8_t forms[LW_LEAF_FORMS];
};

struct lw_block {
	uint32_t site;
	uint32_t birth;		/* coarse: see lw_block_birth_ms() */
	uint64_t bytes;
	enum lw_family family;
	bool is_inherited;	/* from before a fork */
};

/* Address space that the roots take. */
#define LW_BLOCKS_ROOT_BYTES (2 * (sizeof(struct lw_leaf *) << LW_ROOT_BITS))
bool lw_blocks_init(uint32_t granule_shift);

/* The leaf of an address, mapped if there is none; NULL: no memory (the caller counts it). */
struct lw_leaf *lw_blocks_add_leaf(uintptr_t address);

/* In a forked child: from now on all that is in the table is inherited. */
void lw_blocks_fork_child(void);

/* In a forked child: the block at this address, just inserted, is an inherited one put back. */
void lw_blocks_disown(uintptr_t address);

/* Calls visit for every block in the table; blocks come and go meanwhile if threads run. */
typedef void lw_blocks_visit_fn(void *context, uintptr_t address, const struct lw_block *block);
void lw_blocks_visit(lw_blocks_visit_fn *visit, void *context);

/* The same with room of the caller's own, for one who may not be alone: the helper. */
struct lw_blocks_room {
	uint8_t root[(sizeof(struct lw_leaf *) << LW_ROOT_BITS) / 4096];
};
void lw_blocks_visit_in(struct lw_blocks_room *room, lw_blocks_visit_fn *visit, void *context);

/* Time since the start in ms <-> 20 bits: exact to 1 ms up to 32 s, then to 1 part in 16384. */
LW_INLINE uint32_t lw_block_birth(uint64_t ms)
{
	uint32_t shift;

	if (LW_LIKELY(ms < 1u << 15))
		return (uint32_t)ms;
	shift = 49u - (uint32_t)__builtin_clzll(ms); /* leaves 15 bits, the highest set */
	return (shift << 14) + (uint32_t)(ms >> shift);
}

LW_INLINE uint64_t lw_block_birth_ms(uint32_t birth)
{
	uint32_t shift = birth >> 14;

	return shift < 2 ? birth : (uint64_t)(birth - ((shift - 1) << 14)) << (shift - 1);
}

/* NULL: no block was ever there, or can be. */
LW_INLINE struct lw_leaf *lw_block_leaf(uintptr_t address)
{
	struct lw_leaf **root = lw_hot.roots[address >> 3 & 1];

	return LW_LIKELY(!(address >> 47)) ? lw_load(&root[address >> LW_LEAF_BITS]) : NULL;
}

LW_INLINE uint8_t *lw_block_form(struct lw_leaf *leaf, uintptr_t address)
{
	return &leaf->forms[address >> LW_FORM_SHIFT & (LW_LEAF_FORMS - 1)];
}

LW_INLINE uint64_t *lw_block_fine(const struct lw_leaf *leaf, uintptr_t address)
{
	return lw_load(&leaf->fine) + ((address & ((1u << LW_LEAF_BITS) - 1)) >> lw_hot.granule_shift);
}

/* The fine word of an address where these bits of the form are so; NULL elsewhere. */
LW_INLINE uint64_t *lw_block_fine_where(uintptr_t address, uint32_t form, uint32_t bits)
{
	struct lw_leaf *leaf;

	if (LW_UNLIKELY(address & ~(LW_TOP_ADDRESS - 8))) /* too high, or in the second table */
		return NULL;
	leaf = lw_load(&lw_hot.roots[0][address >> LW_LEAF_BITS]);
	return LW_LIKELY(leaf) && LW_LIKELY((lw_load(lw_block_form(leaf, address)) & bits) == form) ?
			       lw_block_fine(leaf, address) : NULL;
}

/* Where a new block's record will be, if there is nothing else to look at. */
LW_INLINE uint64_t *lw_block_fine_only(uintptr_t address)
{
	return lw_block_fine_where(address, LW_FORM_FINE, LW_FORM_MIXED);
}

/* Where a block's record is most likely. */
LW_INLINE uint64_t *lw_block_fine_too(uintptr_t address)
{
	return lw_block_fine_where(address, LW_FORM_FINE, LW_FORM_FINE);
}

/* Which half of its granule a block starts in, at its place in the word; only 32-byte granules have two. */
LW_INLINE uint64_t lw_block_half(uintptr_t address)
{
	return address >> (4 - LW_BLOCK_HALF_AT) & lw_hot.half_bit;
}

/* Is this word the size of the block before it? */
LW_INLINE bool lw_block_is_size(uint64_t word)
{
	return word >= LW_BLOCK_SIZE_WORD && !(word & LW_BLOCK_PRESENT);
}

/* Does this word belong to a block that is there: its own, or its size? */
LW_INLINE bool lw_block_is_held(uint64_t word)
{
	return word & LW_BLOCK_PRESENT || word >= LW_BLOCK_SIZE_WORD;
}

/* All but the size. */
LW_INLINE struct lw_block lw_block_unpack_head(uint64_t word)
{
	return (struct lw_block){
		.site = (uint32_t)(word >> LW_BLOCK_SITE_AT) & (LW_MAX_BLOCK_SITES - 1),
		.birth = (uint32_t)(word >> LW_BLOCK_BIRTH_AT),
		.family = (enum lw_family)(word >> LW_BLOCK_FAMILY_AT & 3),
		.is_inherited = (word >> LW_BLOCK_FORKS_AT & 3) != lw_hot.epoch_bits,
	};
}

LW_INLINE uint64_t lw_block_size_after(const uint64_t *at)
{
	return (lw_load(&at[1]) & ~LW_BLOCK_SIZE_WORD) >> 1;
}

/* The word of a block that was removed, whose size lay in the next word. */
LW_INLINE uint64_t lw_block_removed_big(uint64_t word, uint64_t bytes)
{
	const uint64_t births = ~UINT64_C(0) << LW_BLOCK_BIRTH_AT;

	return (word & ~births & ~(uint64_t)LW_BLOCK_PRESENT) |
	       (bytes < LW_BLOCK_LAST_BIRTH ? bytes : 0) << LW_BLOCK_BIRTH_AT;
}

/* Of a fine word. */
LW_INLINE struct lw_block lw_block_unpack(const uint64_t *at, uint64_t word)
{
	struct lw_block block = lw_block_unpack_head(word);

	block.bytes = word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG;
	if (LW_UNLIKELY(block.bytes == LW_BLOCK_BIG))
		block.bytes = lw_block_size_after(at);
	return block;
}

/* What fine and coarse words have in common. */
LW_INLINE uint64_t lw_block_pack_head(const struct lw_block *block)
{
	return LW_BLOCK_PRESENT | (uint64_t)block->family << LW_BLOCK_FAMILY_AT |
	       (uint64_t)lw_hot.epoch_bits << LW_BLOCK_FORKS_AT | (uint64_t)block->site << LW_BLOCK_SITE_AT |
	       (uint64_t)block->birth << LW_BLOCK_BIRTH_AT;
}

/* The fine word of a block that is not big. */
LW_INLINE uint64_t lw_block_pack(uintptr_t address, const struct lw_block *block)
{
	return lw_block_pack_head(block) | lw_block_half(address) | block->bytes << LW_BLOCK_SIZE_AT;
}

/*
 * What a fine word holds that a right release of the block takes for granted: it is there, at this address, of this
 * family, and no parent's; with the bits that are about it.
 */
LW_INLINE uint64_t lw_block_expected(uintptr_t address, enum lw_family family)
{
	return LW_BLOCK_PRESENT | (uint64_t)family << LW_BLOCK_FAMILY_AT |
	       (uint64_t)lw_hot.epoch_bits << LW_BLOCK_FORKS_AT | lw_block_half(address);
}

LW_INLINE uint64_t lw_block_expected_bits(void)
{
	return LW_BLOCK_PRESENT | 3 << LW_BLOCK_FAMILY_AT | 3 << LW_BLOCK_FORKS_AT | lw_hot.half_bit;
}

/* Records a block. False: no memory for its leaf. *stale is the record that was there, if any. */
bool lw_blocks_insert(struct lw_hidden hidden, const struct lw_block *block, bool *is_stale, struct lw_block *stale);

/* Takes the record out. False: there is none at this address. */
bool lw_blocks_remove(uintptr_t address, struct lw_block *block);

/*
 * The block that was removed from this very address, if no other came to its granule since and none
 * reaches over it: its site, and its size (0: not known, from LW_BLOCK_LAST_BIRTH bytes on). No birth.
 */
bool lw_blocks_find_removed(uintptr_t address, struct lw_block *block);

/* A block came to this address that is not recorded: what was removed from there is forgotten. */
void lw_blocks_forget(uintptr_t address);

/* Looks without taking out. */
bool lw_blocks_find(uintptr_t address, struct lw_block *block);

#endif
