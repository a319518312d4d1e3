/* SPDX-License-Identifier: MIT */
/*
 * scan_words.h - the words of some memory that may be addresses of blocks, looked for four at a time.
 *
 * Blocks lie in few parts of the address space, with nothing for terabytes between them: up to four spans
 * hold them all. Of a word only the 32 bits from 15 to 46 are compared, so that four fit into a vector
 * register; a tag above them does not matter. Whoever is called looks the word up: it is near a block,
 * not more. Long stretches without such a word, most memory that is no block, are passed over eight at a
 * time where the processor can.
 */
#ifndef LW_LIVE_SCAN_WORDS_H
#define LW_LIVE_SCAN_WORDS_H

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "preload/base/base.h"

enum {
	LW_WORDS_SPANS = 4,
	LW_WORDS_UNIT_BITS = 15,
	LW_WORDS_STEP = 4, /* packed structures hold pointers at every multiple of it */
	LW_WORDS_LANES = 4,
	LW_WORDS_SKIP_BYTES = 32,
	LW_WORDS_LONG_BYTES = 256, /* shorter stretches are not worth the start of a skip */
	LW_WORDS_SHORT_BYTES = 512,
};

typedef uint32_t lw_lanes __attribute__((vector_size(16)));
typedef int32_t lw_signed_lanes __attribute__((vector_size(16)));

/* A span is asked for by one subtraction and one comparison; the lanes are signed, so both sides are moved by half. */
struct lw_words_test {
	lw_lanes shift[LW_WORDS_SPANS];
	lw_signed_lanes end[LW_WORDS_SPANS];
};

/* In units of 32 KiB, rising, none touching the next. */
struct lw_words {
	uint32_t nr;
	bool can_skip; /* lw_words_skip() may be called: see lw_words_look() */
	uint32_t first[LW_WORDS_SPANS + 1], last[LW_WORDS_SPANS + 1];
	struct lw_words_test test; /* of them, made by lw_words_look(): most blocks are too short to make it for each */
};

/* The addresses from first to last are looked for too. In any order; cheapest if they rise. */
void lw_words_add(struct lw_words *words, uint64_t first, uint64_t last);

/* After the last span, before anything is visited: finds out what this processor can, too. */
void lw_words_look(struct lw_words *words);

/*
 * The first address in steps of LW_WORDS_SKIP_BYTES from `at` where one of the words that begin in that many bytes
 * lies in a span; or the first of which those words are not all inside of [at, to).
 */
uintptr_t lw_words_skip(const struct lw_words *words, uintptr_t at, uintptr_t to);

LW_INLINE unsigned lw_words_mask(lw_signed_lanes lanes)
{
#ifdef __SSE2__
	return (unsigned)_mm_movemask_ps((__m128)lanes);
#else
	unsigned mask = 0;

	for (unsigned i = 0; i < LW_WORDS_LANES; i++)
		mask |= (lanes[i] ? 1u : 0u) << i;
	return mask;
#endif
}

/* The bit of each of four words, by their lower and upper halves. */
LW_INLINE unsigned lw_words_near(const struct lw_words_test *test, unsigned nr, lw_lanes low, lw_lanes high)
{
	lw_lanes unit = high << (32 - LW_WORDS_UNIT_BITS) | low >> LW_WORDS_UNIT_BITS;
	lw_signed_lanes near = { 0 };

	for (unsigned i = 0; i < nr; i++)
		near |= (lw_signed_lanes)(unit + test->shift[i]) < test->end[i];
	return lw_words_mask(near);
}

LW_INLINE lw_lanes lw_words_load(uintptr_t at)
{
	lw_lanes lanes;

	memcpy(&lanes, (const void *)at, sizeof(lanes));
	return lanes;
}

typedef void lw_words_fn(void *context, uint64_t word, uintptr_t at);

LW_INLINE void lw_words_give(unsigned near, uintptr_t at, lw_words_fn *take, void *context)
{
	for (; near; near &= near - 1) {
		uintptr_t where = at + (unsigned)__builtin_ctz(near) * LW_WORDS_STEP;
		uint64_t word;

		memcpy(&word, (const void *)where, sizeof(word));
		take(context, word, where);
	}
}

/* With `nr` and `take` known to the compiler, this is the loop. It reads nothing outside of [at, to). */
LW_INLINE void lw_words_loop(const struct lw_words *words, unsigned nr, uintptr_t at, uintptr_t to, lw_words_fn *take,
		void *context)
{
	const struct lw_words_test test = words->test;
	const uintptr_t stride = LW_WORDS_LANES * LW_WORDS_STEP;

	for (; at + stride + LW_WORDS_STEP <= to; at += stride) {
		unsigned near = lw_words_near(&test, nr, lw_words_load(at), lw_words_load(at + LW_WORDS_STEP));

		if (LW_UNLIKELY(near))
			lw_words_give(near, at, take, context);
	}
	if (at + stride <= to) { /* three words begin in the last 16 bytes */
		lw_lanes low = lw_words_load(at), high = __builtin_shufflevector(low, low, 1, 2, 3, 3);
		unsigned near = lw_words_near(&test, nr, low, high) & 7;

		if (LW_UNLIKELY(near))
			lw_words_give(near, at, take, context);
		at += stride - LW_WORDS_STEP;
	}
	for (; at + sizeof(uint64_t) <= to; at += LW_WORDS_STEP) {
		uint64_t word;

		memcpy(&word, (const void *)at, sizeof(word));
		if (lw_words_near(&test, nr, (lw_lanes){ (uint32_t)word }, (lw_lanes){ (uint32_t)(word >> 32) }) & 1)
			take(context, word, at);
	}
}

LW_INLINE void lw_words_pass(const struct lw_words *words, uintptr_t at, uintptr_t to, lw_words_fn *take, void *context)
{
	if (words->nr <= 2)
		lw_words_loop(words, 2, at, to, take, context);
	else
		lw_words_loop(words, LW_WORDS_SPANS, at, to, take, context);
}

/* Every word at a multiple of four bytes in [from, to) that lies in a span. */
LW_INLINE void lw_words_visit(const struct lw_words *words, uintptr_t from, uintptr_t to, lw_words_fn *take, void *context)
{
	const uintptr_t reach = LW_WORDS_SKIP_BYTES + LW_WORDS_STEP; /* of the words that begin in one step */
	uintptr_t at = LW_ALIGN_UP(from, (uintptr_t)LW_WORDS_STEP);

	if (to < at || !words->nr)
		return;
	while (words->can_skip && to - at >= LW_WORDS_LONG_BYTES) {
		at = lw_words_skip(words, at, to);
		if (to - at < reach)
			break;
		lw_words_pass(words, at, at + reach, take, context);
		at += LW_WORDS_SKIP_BYTES;
	}
	lw_words_pass(words, at, to, take, context);
}

/*
 * The same for a stretch of at most LW_WORDS_SHORT_BYTES of private memory that was never a file's: where those words are goes
 * to found[], which has room for LW_WORDS_SHORT_BYTES / LW_WORDS_STEP; how many is returned. For many short stretches one
 * after the other. What lies behind the end in the same page may be read, but does not matter.
 */
unsigned lw_words_list(const struct lw_words *words, uintptr_t from, uintptr_t to, uintptr_t *found);

#endif
