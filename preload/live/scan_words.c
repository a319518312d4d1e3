/* SPDX-License-Identifier: MIT */
/* scan_words.c - the spans that are looked for; see scan_words.h. */
#include "preload/live/scan_words.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uintptr_t page_bytes = 4096;
static const uint64_t address_mask = (UINT64_C(1) << (LW_WORDS_UNIT_BITS + 32)) - 1;

/* Spans i and i + 1 become one, with what lies between them. */
static void join(struct lw_words *words, uint32_t i)
{
	if (words->last[i + 1] > words->last[i])
		words->last[i] = words->last[i + 1];
	words->nr--;
	for (i++; i < words->nr; i++) {
		words->first[i] = words->first[i + 1];
		words->last[i] = words->last[i + 1];
	}
}

/* What touches becomes one, as do the two nearest if there are too many. */
static void settle(struct lw_words *words)
{
	uint32_t nearest = 0;

	for (uint32_t i = 0; i + 1 < words->nr;) {
		if (words->last[i] == UINT32_MAX || words->last[i] + 1 >= words->first[i + 1])
			join(words, i);
		else
			i++;
	}
	if (words->nr <= LW_WORDS_SPANS)
		return;
	for (uint32_t i = 1; i + 1 < words->nr; i++) {
		if (words->first[i + 1] - words->last[i] < words->first[nearest + 1] - words->last[nearest])
			nearest = i;
	}
	join(words, nearest);
}

static struct lw_words_test make_test(const struct lw_words *words)
{
	struct lw_words_test test;

	for (uint32_t i = 0; i < LW_WORDS_SPANS; i++) {
		uint32_t first = i < words->nr ? words->first[i] : 0, last = i < words->nr ? words->last[i] : 0;

		test.shift[i] = (lw_lanes){ 0 } + (UINT32_C(0x80000000) - first);
		test.end[i] = (lw_signed_lanes){ 0 } + (i < words->nr ? (int32_t)((last - first) ^ UINT32_C(0x80000000)) + 1 : INT32_MIN);
	}
	return test;
}

void lw_words_add(struct lw_words *words, uint64_t first, uint64_t last)
{
	uint32_t from = (uint32_t)((first & address_mask) >> LW_WORDS_UNIT_BITS);
	uint32_t to = (uint32_t)((last & address_mask) >> LW_WORDS_UNIT_BITS), at = words->nr;

	if (at && from >= words->first[at - 1] && from <= words->last[at - 1] + 1) {
		if (to > words->last[at - 1])
			words->last[at - 1] = to;
		return;
	}
	for (; at > 0 && words->first[at - 1] > from; at--) {
		words->first[at] = words->first[at - 1];
		words->last[at] = words->last[at - 1];
	}
	words->first[at] = from;
	words->last[at] = to;
	words->nr++;
	settle(words);
}

struct list {
	uintptr_t *found;
	unsigned nr;
};

static void note(void *context, uint64_t word, uintptr_t at)
{
	struct list *list = context;

	(void)word;
	list->found[list->nr++] = at;
}

#ifdef __x86_64__

enum { STRIDE = LW_WORDS_SKIP_BYTES, XCR0_YMM = 6, AHEAD = 2048 /* past the end of a page, where the processor's own prefetch stops */ };

/* The kernel keeps the upper halves of the registers, and the processor knows AVX2. */
void lw_words_look(struct lw_words *words)
{
	uint32_t a, b, c, d, low, high;

	words->test = make_test(words);
	words->can_skip = false;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & XCR0_YMM) != XCR0_YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return;
	words->can_skip = b & bit_AVX2;
}

__attribute__((target("avx2"))) static inline __m256i near_8(const __m256i *shift, const __m256i *end,
		unsigned nr, uintptr_t at)
{
	__m256i low = _mm256_loadu_si256((const __m256i_u *)(const void *)at);
	__m256i high = _mm256_loadu_si256((const __m256i_u *)(const void *)(at + LW_WORDS_STEP));
	__m256i unit = _mm256_or_si256(_mm256_slli_epi32(high, 32 - LW_WORDS_UNIT_BITS),
			_mm256_srli_epi32(low, LW_WORDS_UNIT_BITS));
	__m256i near = _mm256_cmpgt_epi32(end[0], _mm256_add_epi32(unit, shift[0]));

	for (unsigned i = 1; i < nr; i++)
		near = _mm256_or_si256(near, _mm256_cmpgt_epi32(end[i], _mm256_add_epi32(unit, shift[i])));
	return near;
}

__attribute__((target("avx2"))) uintptr_t lw_words_skip(const struct lw_words *words, uintptr_t at, uintptr_t to)
{
	const struct lw_words_test test = words->test;
	__m256i shift[LW_WORDS_SPANS], end[LW_WORDS_SPANS];

	for (unsigned i = 0; i < LW_WORDS_SPANS; i++) {
		shift[i] = _mm256_broadcastsi128_si256((__m128i)test.shift[i]);
		end[i] = _mm256_broadcastsi128_si256((__m128i)test.end[i]);
	}
	for (; at + 2 * STRIDE + LW_WORDS_STEP <= to; at += 2 * STRIDE) {
		__m256i first, both;

		_mm_prefetch((const char *)(at + AHEAD), _MM_HINT_T0);
		first = near_8(shift, end, LW_WORDS_SPANS, at);
		both = _mm256_or_si256(first, near_8(shift, end, LW_WORDS_SPANS, at + STRIDE));

		if (LW_LIKELY(_mm256_testz_si256(both, both)))
			continue;
		return _mm256_testz_si256(first, first) ? at + STRIDE : at;
	}
	for (; at + STRIDE + LW_WORDS_STEP <= to; at += STRIDE) {
		__m256i near = near_8(shift, end, LW_WORDS_SPANS, at);

		if (!_mm256_testz_si256(near, near))
			return at;
	}
	return at;
}

/* Eight words may be read from `at`, of which some begin behind the last that ends before `to`. */
static inline bool is_in_page(uintptr_t at, uintptr_t to)
{
	return at + STRIDE + LW_WORDS_STEP <= ((to - 1) | (page_bytes - 1)) + 1;
}

/* With `nr` known to the compiler, this is the loop. */
__attribute__((target("avx2"), always_inline)) static inline unsigned list_8(const struct lw_words *words, unsigned nr,
		uintptr_t at, uintptr_t to, uintptr_t *found)
{
	__m256i shift[LW_WORDS_SPANS], end[LW_WORDS_SPANS];
	unsigned nr_found = 0;

	for (unsigned i = 0; i < nr; i++) {
		shift[i] = _mm256_broadcastsi128_si256((__m128i)words->test.shift[i]);
		end[i] = _mm256_broadcastsi128_si256((__m128i)words->test.end[i]);
	}
	for (; at + sizeof(uint64_t) <= to; at += STRIDE) {
		unsigned whole = (unsigned)(to - at - sizeof(uint64_t)) / LW_WORDS_STEP + 1, near;

		if (LW_UNLIKELY(!is_in_page(at, to))) {
			struct list list = { found, nr_found };

			lw_words_pass(words, at, to, note, &list);
			return list.nr;
		}
		near = (unsigned)_mm256_movemask_ps((__m256)near_8(shift, end, nr, at));
		near &= whole < 8 ? (1u << whole) - 1 : 0xff;
		for (; near; near &= near - 1)
			found[nr_found++] = at + (unsigned)__builtin_ctz(near) * LW_WORDS_STEP;
	}
	return nr_found;
}

__attribute__((target("avx2"))) static unsigned list_fast(const struct lw_words *words, uintptr_t at, uintptr_t to,
		uintptr_t *found)
{
	return words->nr <= 2 ? list_8(words, 2, at, to, found) : list_8(words, LW_WORDS_SPANS, at, to, found);
}

#else

static unsigned list_fast(const struct lw_words *words, uintptr_t at, uintptr_t to, uintptr_t *found)
{
	struct list list = { found, 0 };

	lw_words_pass(words, at, to, note, &list);
	return list.nr;
}

void lw_words_look(struct lw_words *words)
{
	words->test = make_test(words);
	words->can_skip = false;
}

uintptr_t lw_words_skip(const struct lw_words *words, uintptr_t at, uintptr_t to)
{
	(void)words;
	(void)to;
	return at;
}

#endif

unsigned lw_words_list(const struct lw_words *words, uintptr_t from, uintptr_t to, uintptr_t *found)
{
	uintptr_t at = LW_ALIGN_UP(from, (uintptr_t)LW_WORDS_STEP);
	struct list list = { found, 0 };

	if (to < at || !words->nr)
		return 0;
	if (words->can_skip)
		return list_fast(words, at, to, found);
	lw_words_pass(words, at, to, note, &list);
	return list.nr;
}
