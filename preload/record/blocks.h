/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - address -> (site, size, birth): the address-indexed table of live blocks.
 *
 * Two levels: a root of pointers, one per 16 MiB of address space, and leaves of one 64-bit word
 * per granule. A granule is 32 bytes where the next allocator is glibc's (whose chunks are at least
 * 32 bytes, 16-aligned, so that at most one block starts in each; one bit says in which half),
 * else 16. Addresses that are 8 but not 16-aligned, which some allocators give to tiny blocks, live
 * in a second table of the same shape, so that two 8-byte blocks never meet in one granule.
 *
 * Each call is one load and one store of the granule's word. No atomic exchange is needed: only
 * the owner of a block inserts or removes it, and the allocator's own synchronisation orders a
 * block's removal before its address is handed out again (the record is removed before the real
 * free). Words are relaxed atomics, because a scan may read them at any time.
 *
 * A block of 256 KiB and more keeps its size in the next granule's word, which it covers itself.
 */
#ifndef LW_RECORD_BLOCKS_H
#define LW_RECORD_BLOCKS_H

#include "preload/base/base.h"
#include "preload/base/hot.h"

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
 * how a second release of it is told from the release of what was never ours.
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
	LW_LEAF_BITS = 24,
	LW_ROOT_BITS = 47 - LW_LEAF_BITS,
	LW_MAX_BLOCK_SITES = 1 << LW_BLOCK_SITE_BITS,
	LW_BLOCK_LAST_BIRTH = (1 << LW_BLOCK_BIRTH_BITS) - 17, /* whose upper 16 bits are not all ones */
};

#define LW_BLOCK_SIZE_WORD (UINT64_C(0xffff) << 48)

struct lw_block {
	uint32_t site;
	uint32_t birth;		/* coarse: see lw_block_birth_ms() */
	uint64_t bytes;
	enum lw_family family;
	bool is_inherited;	/* from before a fork */
};

/* Address space that the roots take. */
#define LW_BLOCKS_ROOT_BYTES (2 * (sizeof(uint64_t *) << LW_ROOT_BITS))
bool lw_blocks_init(uint32_t granule_shift);

/* The leaf of an address, mapped if there is none; NULL: no memory (the caller counts it). */
uint64_t *lw_blocks_add_leaf(uintptr_t address);

/* In a forked child: from now on all that is in the table is inherited. */
void lw_blocks_fork_child(void);

/* In a forked child: the block at this address, just inserted, is an inherited one put back. */
void lw_blocks_disown(uintptr_t address);

/*
 * The word of a new block is in use: a release was not seen. Takes out the record that is there, or
 * the big block before it whose size is kept there.
 */
bool lw_blocks_take_stale(uint64_t *at, struct lw_block *stale);

/* Calls visit for every block in the table; blocks come and go meanwhile if threads run. */
typedef void lw_blocks_visit_fn(void *context, uintptr_t address, const struct lw_block *block);
void lw_blocks_visit(lw_blocks_visit_fn *visit, void *context);

/* The same with room of the caller's own, for one who may not be alone: the helper. */
struct lw_blocks_room {
	uint8_t root[(sizeof(uint64_t *) << LW_ROOT_BITS) / 4096];
	uint8_t leaf[(1 << 20) * 8 / 4096 + 1];
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

LW_INLINE uint64_t *lw_block_word(uintptr_t address)
{
	uint64_t **root = lw_hot.roots[address >> 3 & 1];
	uint64_t *leaf;

	if (LW_UNLIKELY(address >> 47))
		return NULL;
	leaf = lw_load(&root[address >> LW_LEAF_BITS]);
	if (LW_UNLIKELY(!leaf))
		return NULL;
	return leaf + ((address & ((1u << LW_LEAF_BITS) - 1)) >> lw_hot.granule_shift);
}

/* The word of a new block is likely to be far away: fetch it while the stack is looked at. */
LW_INLINE void lw_block_prefetch(uintptr_t address)
{
	const uint64_t *at = lw_block_word(address);

	if (LW_LIKELY(at))
		__builtin_prefetch(at, 1);
}

/* Which half of its granule a block starts in; only 32-byte granules have two. */
LW_INLINE uint64_t lw_block_half(uintptr_t address)
{
	return address >> 4 & (lw_hot.granule_shift == 5);
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

LW_INLINE struct lw_block lw_block_unpack(const uint64_t *at, uint64_t word)
{
	struct lw_block block = {
		.site = (uint32_t)(word >> LW_BLOCK_SITE_AT) & (LW_MAX_BLOCK_SITES - 1),
		.birth = (uint32_t)(word >> LW_BLOCK_BIRTH_AT),
		.bytes = word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG,
		.family = (enum lw_family)(word >> LW_BLOCK_FAMILY_AT & 3),
		.is_inherited = (word >> LW_BLOCK_FORKS_AT & 3) != lw_hot.epoch_bits,
	};

	if (LW_UNLIKELY(block.bytes == LW_BLOCK_BIG))
		block.bytes = (lw_load(&at[1]) & ~LW_BLOCK_SIZE_WORD) >> 1;
	return block;
}

/* Records a block. False: no memory for its leaf. *stale is the record that was there, if any. */
LW_INLINE bool lw_blocks_insert(uintptr_t address, const struct lw_block *block, bool *is_stale,
		struct lw_block *stale)
{
	uint64_t *at = lw_block_word(address), old, word;

	if (LW_UNLIKELY(!at)) {
		if (!lw_blocks_add_leaf(address))
			return false;
		at = lw_block_word(address);
	}
	old = lw_load(at);
	*is_stale = LW_UNLIKELY(lw_block_is_held(old)) && lw_blocks_take_stale(at, stale);
	word = LW_BLOCK_PRESENT | lw_block_half(address) << LW_BLOCK_HALF_AT |
	       (uint64_t)block->family << LW_BLOCK_FAMILY_AT |
	       (uint64_t)lw_hot.epoch_bits << LW_BLOCK_FORKS_AT |
	       (uint64_t)block->site << LW_BLOCK_SITE_AT | (uint64_t)block->birth << LW_BLOCK_BIRTH_AT;
	if (LW_LIKELY(block->bytes < LW_BLOCK_BIG)) {
		word |= block->bytes << LW_BLOCK_SIZE_AT;
	} else {
		lw_store(&at[1], LW_BLOCK_SIZE_WORD | block->bytes << 1);
		word |= (uint64_t)LW_BLOCK_BIG << LW_BLOCK_SIZE_AT;
	}
	lw_store(at, word);
	return true;
}

/* Takes the record out. False: there is none at this address. */
LW_INLINE bool lw_blocks_remove(uintptr_t address, struct lw_block *block)
{
	uint64_t *at = lw_block_word(address), word;

	if (LW_UNLIKELY(!at))
		return false;
	word = lw_load(at);
	if (LW_UNLIKELY(!(word & LW_BLOCK_PRESENT) ||
			(word >> LW_BLOCK_HALF_AT & 1) != lw_block_half(address)))
		return false;
	*block = lw_block_unpack(at, word);
	if (LW_UNLIKELY((word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG) == LW_BLOCK_BIG))
		lw_store(&at[1], 0);
	lw_store(at, word & ~(uint64_t)LW_BLOCK_PRESENT);
	return true;
}

/*
 * The block that was removed from this very address, if no other came to its granule since and none
 * reaches over it: its site, and its size unless that was big (then 0).
 */
bool lw_blocks_find_removed(uintptr_t address, struct lw_block *block);

/* A block came to this address that is not recorded: what was removed from there is forgotten. */
void lw_blocks_forget(uintptr_t address);

/* Looks without taking out. */
LW_INLINE bool lw_blocks_find(uintptr_t address, struct lw_block *block)
{
	uint64_t *at = lw_block_word(address), word;

	if (!at)
		return false;
	word = lw_load(at);
	if (!(word & LW_BLOCK_PRESENT) || (word >> LW_BLOCK_HALF_AT & 1) != lw_block_half(address))
		return false;
	*block = lw_block_unpack(at, word);
	return true;
}

#endif
