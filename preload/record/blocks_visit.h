/* SPDX-License-Identifier: MIT */
/*
 * blocks_visit.h - all words of the block table in the order of addresses, for the compiler to inline what is done
 * with each: a search for lost memory begins with a visit to all, and so does the end of a process.
 */
#ifndef LW_RECORD_BLOCKS_VISIT_H
#define LW_RECORD_BLOCKS_VISIT_H

#include "preload/base/base.h"
#include "preload/base/sys.h"
#include "preload/record/blocks.h"

enum {
	LW_BLOCK_PAGE_WORDS = 4096 / sizeof(uint64_t),
	LW_COARSE_BYTES = 1 << LW_COARSE_SHIFT,
	LW_FORM_BYTES = 1 << LW_FORM_SHIFT,
};

/* ---- coarse words ---- */

LW_INLINE uint64_t *lw_coarse_word(const struct lw_leaf *leaf, uintptr_t address)
{
	return lw_load(&leaf->fine) - LW_COARSE_WORDS - LW_BLOCK_PAGE_WORDS +
	       ((address & ((1u << LW_LEAF_BITS) - 1)) >> LW_COARSE_SHIFT);
}

LW_INLINE uintptr_t lw_coarse_place(uint64_t word)
{
	return (word >> LW_COARSE_PLACE_AT & 7) << 5 | (word >> LW_BLOCK_HALF_AT & 1) << 4;
}

LW_INLINE bool lw_coarse_is_big(uint64_t word)
{
	return (word >> LW_BLOCK_SIZE_AT & LW_COARSE_BIG) == LW_COARSE_BIG;
}

LW_INLINE struct lw_block lw_coarse_unpack(const uint64_t *at, uint64_t word)
{
	struct lw_block block = lw_block_unpack_head(word);

	block.bytes = lw_coarse_is_big(word) ? lw_block_size_after(at) : word >> LW_BLOCK_SIZE_AT & LW_COARSE_BIG;
	return block;
}

/* ---- in the order of addresses ---- */

/* 256 bytes of address space, with the words that are about it. */
struct lw_stretch {
	uintptr_t start;
	uint64_t *coarse; /* NULL: not in use here */
	uint64_t *fine;	  /* the first of those */
};

LW_INLINE struct lw_stretch lw_stretch_at(struct lw_leaf *leaf, uintptr_t address, uint32_t form)
{
	uintptr_t start = address & ~(uintptr_t)(LW_COARSE_BYTES - 1);

	return (struct lw_stretch){
		.start = start,
		.coarse = form >= LW_FORM_COARSE ? lw_coarse_word(leaf, start) : NULL,
		.fine = form == LW_FORM_FINE || form == LW_FORM_MIXED ? lw_block_fine(leaf, start) : NULL,
	};
}

typedef void lw_blocks_word_fn(void *context, uintptr_t address, uint64_t *at, bool is_coarse);

/* table: 8 where these are the blocks whose addresses are odd multiples of 8. */
LW_INLINE void lw_stretch_visit(const struct lw_stretch *of, uintptr_t table, lw_blocks_word_fn *visit, void *context)
{
	uint64_t coarse = of->coarse ? lw_load(of->coarse) : 0;
	uintptr_t coarse_start = of->start + lw_coarse_place(coarse) + table;
	size_t nr_fine = of->fine ? (size_t)LW_COARSE_BYTES >> lw_hot.granule_shift : 0;

	for (size_t i = 0; i < nr_fine; i++) {
		uint64_t word = lw_load(&of->fine[i]);
		uintptr_t start = of->start + (i << lw_hot.granule_shift) + (word >> LW_BLOCK_HALF_AT & 1) * 16 + table;

		if (!(word & LW_BLOCK_PRESENT))
			continue;
		if (coarse & LW_BLOCK_PRESENT && coarse_start < start) {
			visit(context, coarse_start, of->coarse, true);
			coarse = 0;
		}
		visit(context, start, &of->fine[i], false);
	}
	if (coarse & LW_BLOCK_PRESENT)
		visit(context, coarse_start, of->coarse, true);
}

/*
 * Pages of a mapping that were never touched would only be filled with zeros by looking. Which are
 * resident is asked in one call; where it is refused all count as resident.
 */
LW_INLINE void lw_blocks_find_resident(const void *start, size_t nr_pages, uint8_t *resident)
{
	if (lw_syscall(SYS_mincore, start, nr_pages * 4096, resident) == 0)
		return;
	for (size_t i = 0; i < nr_pages; i++)
		resident[i] = 1;
}

LW_INLINE void lw_blocks_visit_fine(uint64_t *words, uintptr_t start, lw_blocks_word_fn *visit, void *context)
{
	for (size_t i = 0; i < (size_t)LW_FORM_BYTES >> lw_hot.granule_shift; i++) {
		uint64_t word = lw_load(&words[i]);

		if (word & LW_BLOCK_PRESENT)
			visit(context, start + (i << lw_hot.granule_shift) + (word >> LW_BLOCK_HALF_AT & 1) * 16, &words[i],
					false);
	}
}

LW_INLINE void lw_blocks_visit_leaf(struct lw_leaf *leaf, uintptr_t start, uintptr_t table, lw_blocks_word_fn *visit,
		void *context)
{
	for (uintptr_t part = start; part < start + ((uintptr_t)1 << LW_LEAF_BITS); part += LW_FORM_BYTES) {
		uint32_t form = lw_load(lw_block_form(leaf, part));

		if (form == LW_FORM_FINE) {
			lw_blocks_visit_fine(lw_block_fine(leaf, part), part + table, visit, context);
			continue;
		}
		for (uintptr_t at = part; form && at < part + LW_FORM_BYTES; at += LW_COARSE_BYTES) {
			struct lw_stretch stretch = lw_stretch_at(leaf, at, form);

			lw_stretch_visit(&stretch, table, visit, context);
		}
	}
}

LW_INLINE void lw_blocks_visit_words(struct lw_blocks_room *room, lw_blocks_word_fn *visit, void *context)
{
	for (uintptr_t table = 0; table < LW_ARRAY_LENGTH(lw_hot.roots); table++) {
		struct lw_leaf **root = lw_hot.roots[table];

		lw_blocks_find_resident(root, LW_ARRAY_LENGTH(room->root), room->root);
		for (uintptr_t i = 0; i < (uintptr_t)1 << LW_ROOT_BITS; i++) {
			struct lw_leaf *leaf;

			if (i % LW_BLOCK_PAGE_WORDS == 0 && !(room->root[i / LW_BLOCK_PAGE_WORDS] & 1)) {
				i += LW_BLOCK_PAGE_WORDS - 1;
				continue;
			}
			leaf = lw_load_acquire(&root[i]);
			if (leaf)
				lw_blocks_visit_leaf(leaf, i << LW_LEAF_BITS, table * 8, visit, context);
		}
	}
}

/* The block whose word is at this place. */
LW_INLINE struct lw_block lw_blocks_unpack(const uint64_t *at, bool is_coarse)
{
	uint64_t word = lw_load(at);

	return is_coarse ? lw_coarse_unpack(at, word) : lw_block_unpack(at, word);
}

#endif
