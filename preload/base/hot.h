/* SPDX-License-Identifier: MIT */
/*
 * hot.h - what the malloc path reads of the process: one page, read by all, written at bring-up.
 *
 * The page is marked MADV_WIPEONFORK. A forked child (fork, raw clone) finds it all zero, so that
 * `active` is 0 there and the first hook takes the slow path, which gives the child tables of its
 * own. A child that shares memory (vfork, CLONE_VM) sees it unchanged and counts as its parent.
 */
#ifndef LW_BASE_HOT_H
#define LW_BASE_HOT_H

#include "preload/base/base.h"

struct lw_leaf;

struct lw_hot_values {
	uint32_t active;	/* tracking is on in this process */
	uint32_t generation;	/* rises when code was unmapped: remembered stacks older than it are void */
	uint32_t granule_shift;	/* block table: log2 of bytes per record */
	uint32_t epoch_bits;	/* lowest two bits of the number of forks behind us */
	struct lw_leaf **roots[2]; /* block table, by bit 3 of the address */
	uint8_t *chunks;	/* region: counters */
	uint64_t start_ns;	/* CLOCK_MONOTONIC_COARSE at the start */
	uint32_t unloading;	/* dlclose calls under way: rules may change under us */
	uint32_t depth;		/* frames kept */
	uint32_t birth_floor;	/* least birth of new blocks: raised by a checkpoint, so that it is above all before */
	uint32_t half_bit;	/* block table: the bit that says in which half of its granule a block starts; 0: no halves */
	uint64_t sample_bytes;	/* option `sample`: mean bytes from one recorded allocation to the next; 0: all are */
	uint64_t next_sample_ms; /* when the history wants its next look, ms after the start; 0: it is at it */
	uint64_t next_look_ms;	/* since the start; written by whoever looks, now and then */
};

/* Padded to a page of its own by the aligned attribute of its definition. */
extern union lw_hot_page {
	struct lw_hot_values hot;
	char page[4096];
} lw_hot_page;

#define lw_hot (lw_hot_page.hot)

#endif
