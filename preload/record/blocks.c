/* SPDX-License-Identifier: MIT */
/* blocks.c - the cold side of the block table: roots, leaves, forks, visiting all; see blocks.h. */
#include "preload/record/blocks.h"

#include "preload/base/mem.h"
#include "preload/base/sys.h"

enum { PAGE_WORDS = 4096 / sizeof(uint64_t) };

/* Used at the end of the process, or by a fork's one thread. */
static struct lw_blocks_room own_room LW_ROOM;

/* Values of the fork bits that blocks in the table may have. */
static uint32_t used_epochs;

static size_t leaf_words(void)
{
	return (size_t)1 << (LW_LEAF_BITS - lw_hot.granule_shift);
}

bool lw_blocks_init(uint32_t granule_shift)
{
	lw_hot.granule_shift = granule_shift;
	lw_hot.epoch_bits = 0;
	used_epochs = 1;
	lw_hot.roots[0] = lw_mem_map(LW_BLOCKS_ROOT_BYTES, "leakwatch blocks");
	lw_hot.roots[1] = lw_hot.roots[0] + ((size_t)1 << LW_ROOT_BITS);
	return lw_hot.roots[0] != NULL;
}

LW_COLD uint64_t *lw_blocks_add_leaf(uintptr_t address)
{
	uint64_t **root = lw_hot.roots[address >> 3 & 1], **slot, *leaf, *other = NULL;
	size_t bytes = (leaf_words() + 1) * sizeof(uint64_t); /* a big block in the last granule looks one further */

	if (address >> 47)
		return NULL;
	slot = &root[address >> LW_LEAF_BITS];
	leaf = lw_mem_map(bytes, "leakwatch blocks");
	if (!leaf)
		return NULL;
	if (__atomic_compare_exchange_n(slot, &other, leaf, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		return leaf;
	lw_mem_unmap(leaf, bytes);
	return other;
}

LW_COLD bool lw_blocks_take_stale(uint64_t *at, struct lw_block *stale)
{
	uint64_t word = lw_load(at);

	if (lw_block_is_size(word)) /* never in the first word of a leaf */
		word = lw_load(--at);
	if (!(word & LW_BLOCK_PRESENT))
		return false;
	*stale = lw_block_unpack(at, word);
	if ((word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG) == LW_BLOCK_BIG)
		lw_store(&at[1], 0);
	lw_store(at, 0);
	return true;
}

/*
 * Does a live block that starts before this address reach over it? Blocks do not overlap, so the
 * nearest one before it decides. Looks as far back as its leaf begins, and through the leaf before.
 */
static bool is_covered(uintptr_t address)
{
	const uintptr_t leaf_bytes = (uintptr_t)1 << LW_LEAF_BITS, granule = (uintptr_t)1 << lw_hot.granule_shift;
	uintptr_t start = address & ~(leaf_bytes - 1), at = address & ~(granule - 1);

	start = start < leaf_bytes ? start : start - leaf_bytes;
	while (at > start) {
		const uint64_t *word;
		struct lw_block block;

		at -= granule;
		word = lw_block_word(at);
		if (!word) {
			at &= ~(leaf_bytes - 1); /* nothing in all of this leaf */
			continue;
		}
		if (!(lw_load(word) & LW_BLOCK_PRESENT))
			continue;
		block = lw_block_unpack(word, lw_load(word));
		return at + (lw_load(word) >> LW_BLOCK_HALF_AT & 1) * 16 + block.bytes > address;
	}
	return false;
}

bool lw_blocks_find_removed(uintptr_t address, struct lw_block *block)
{
	uint64_t *at = lw_block_word(address), word;

	if (!at)
		return false;
	word = lw_load(at);
	if (!word || lw_block_is_held(word) || (word >> LW_BLOCK_HALF_AT & 1) != lw_block_half(address) ||
			is_covered(address))
		return false;
	*block = (struct lw_block){
		.site = (uint32_t)(word >> LW_BLOCK_SITE_AT) & (LW_MAX_BLOCK_SITES - 1),
		.birth = (uint32_t)(word >> LW_BLOCK_BIRTH_AT),
		.bytes = word >> LW_BLOCK_SIZE_AT & LW_BLOCK_BIG,
		.family = (enum lw_family)(word >> LW_BLOCK_FAMILY_AT & 3),
	};
	if (block->bytes == LW_BLOCK_BIG)
		block->bytes = 0;
	return true;
}

void lw_blocks_forget(uintptr_t address)
{
	uint64_t *at = lw_hot.roots[0] ? lw_block_word(address) : NULL;

	if (at && !lw_block_is_held(lw_load(at)))
		lw_store(at, 0);
}

/*
 * Pages of a mapping that were never touched would only be filled with zeros by looking. Which are
 * resident is asked in one call; where it is refused all count as resident.
 */
static void find_resident(const void *start, size_t nr_pages, uint8_t *resident)
{
	if (lw_syscall(SYS_mincore, start, nr_pages * 4096, resident) == 0)
		return;
	for (size_t i = 0; i < nr_pages; i++)
		resident[i] = 1;
}

typedef void visit_word_fn(void *context, uintptr_t address, uint64_t *at);

/* Inlined, as is what is visited with, because a search for lost memory begins with a visit to all. */
LW_INLINE void visit_leaf(uint64_t *leaf, uint8_t *resident, uintptr_t start, visit_word_fn *visit,
		void *context)
{
	size_t nr_words = leaf_words();

	find_resident(leaf, nr_words / PAGE_WORDS, resident);
	for (size_t page = 0; page < nr_words / PAGE_WORDS; page++) {
		if (!(resident[page] & 1))
			continue;
		for (size_t i = page * PAGE_WORDS; i < (page + 1) * PAGE_WORDS; i++) {
			uint64_t word = lw_load(&leaf[i]);

			if (word & LW_BLOCK_PRESENT)
				visit(context, start + (i << lw_hot.granule_shift) +
						(word >> LW_BLOCK_HALF_AT & 1) * 16, &leaf[i]);
		}
	}
}

LW_INLINE void visit_words(struct lw_blocks_room *room, visit_word_fn *visit, void *context)
{
	for (uintptr_t table = 0; table < LW_ARRAY_LENGTH(lw_hot.roots); table++) {
		uint64_t **root = lw_hot.roots[table];

		find_resident(root, LW_ARRAY_LENGTH(room->root), room->root);
		for (uintptr_t i = 0; i < (uintptr_t)1 << LW_ROOT_BITS; i++) {
			uint64_t *leaf;

			if (i % PAGE_WORDS == 0 && !(room->root[i / PAGE_WORDS] & 1)) {
				i += PAGE_WORDS - 1;
				continue;
			}
			leaf = lw_load_acquire(&root[i]);
			if (leaf)
				visit_leaf(leaf, room->leaf, (i << LW_LEAF_BITS) + table * 8, visit, context);
		}
	}
}

struct block_visit {
	lw_blocks_visit_fn *visit;
	void *context;
};

static void visit_block(void *context, uintptr_t address, uint64_t *at)
{
	const struct block_visit *to = context;
	struct lw_block block = lw_block_unpack(at, lw_load(at));

	to->visit(to->context, address, &block);
}

void lw_blocks_visit_in(struct lw_blocks_room *room, lw_blocks_visit_fn *visit, void *context)
{
	struct block_visit to = { visit, context };

	if (lw_hot.roots[0])
		visit_words(room, visit_block, &to);
}

void lw_blocks_visit(lw_blocks_visit_fn *visit, void *context)
{
	lw_blocks_visit_in(&own_room, visit, context);
}

static void set_epoch(void *context, uintptr_t address, uint64_t *at)
{
	const uint64_t *bits = context;

	(void)address;
	lw_store(at, (lw_load(at) & ~(UINT64_C(3) << LW_BLOCK_FORKS_AT)) | *bits << LW_BLOCK_FORKS_AT);
}

void lw_blocks_fork_child(void)
{
	uint64_t oldest = 0;
	uint32_t next;

	if (used_epochs == 0xf) { /* the fourth fork in a row without exec: renumber all blocks */
		visit_words(&own_room, set_epoch, &oldest);
		used_epochs = 1;
	}
	for (next = 0; used_epochs >> next & 1; next++)
		;
	used_epochs |= 1u << next;
	lw_hot.epoch_bits = next;
}

void lw_blocks_disown(uintptr_t address)
{
	uint64_t *at = lw_block_word(address);
	uint64_t parents = lw_hot.epoch_bits - 1; /* a child's bits are one above its parent's, or 1 */

	if (lw_hot.epoch_bits && at)
		set_epoch(&parents, address, at);
}
