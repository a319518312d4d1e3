/* SPDX-License-Identifier: MIT */
/*
 * unit-words.c - the search for words near blocks against a slow one: random spans, random stretches of memory
 * that begin and end right at pages which may not be read, every word at every multiple of four.
 */
#include "test/unit/tap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "preload/live/scan_words.h"

enum { ROUNDS = 4000, MAX_FOUND = 4096, PAGE = 4096, MAX_RANGES = 12 };

static uint64_t state = 7;

static uint64_t roll(uint64_t sides)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 16) % sides;
}

struct range {
	uint64_t first, last;
};

/* Near each other, far apart, at the end of the address space, from one block to many terabytes. */
static struct range random_range(void)
{
	static const uint64_t places[] = { 0, 0x400000, UINT64_C(0x555500000000), UINT64_C(0x7ffe00000000),
		UINT64_C(0x7ffffff00000) };
	const uint64_t most = (UINT64_C(1) << 47) - 1;
	uint64_t first = places[roll(5)] + roll(UINT64_C(1) << (10 + roll(22)));
	uint64_t last = first + roll(UINT64_C(1) << roll(44));

	first = first < most ? first : most;
	return (struct range){ first, last < most ? last : most };
}

struct found {
	uintptr_t at[MAX_FOUND];
	unsigned nr;
};

static void note(void *context, uint64_t word, uintptr_t at)
{
	struct found *found = context;
	uint64_t there;

	memcpy(&there, (const void *)at, sizeof(there));
	if (there == word && found->nr < MAX_FOUND)
		found->at[found->nr++] = at;
}

static bool is_in(const struct lw_words *words, uint64_t word)
{
	uint32_t unit = (uint32_t)((word & ((UINT64_C(1) << 47) - 1)) >> LW_WORDS_UNIT_BITS);

	for (uint32_t i = 0; i < words->nr; i++) {
		if (unit >= words->first[i] && unit <= words->last[i])
			return true;
	}
	return false;
}

static bool is_orderly(const struct lw_words *words)
{
	for (uint32_t i = 0; i + 1 < words->nr; i++) {
		if (words->last[i] >= words->first[i + 1])
			return false;
	}
	return words->nr <= LW_WORDS_SPANS;
}

static uint64_t random_word(const struct range *ranges, unsigned nr)
{
	const struct range *range = &ranges[roll(nr)];
	uint64_t word = range->first + roll(range->last - range->first + 1);

	if (roll(3) == 0)
		return roll(UINT64_MAX);
	if (roll(4) == 0)
		word += roll(1 << 20) - (1 << 19);
	return roll(4) ? word : word | roll(1 << 16) << 48;
}

/* Where they differ; NULL: nowhere. */
static const char *compare(char *page)
{
	struct range ranges[MAX_RANGES];
	unsigned nr = 1 + (unsigned)roll(MAX_RANGES), nr_slow = 0;
	uint64_t bytes = roll(2) ? roll(200) : roll(2000);
	uintptr_t from = (uintptr_t)page + (roll(2) ? 0 : PAGE - bytes), to = from + bytes;
	struct lw_words words = { 0 };
	uintptr_t listed[LW_WORDS_SHORT_BYTES / LW_WORDS_STEP];
	unsigned nr_listed;
	struct found found;

	found.nr = 0;
	for (unsigned i = 0; i < nr; i++) {
		ranges[i] = random_range();
		lw_words_add(&words, ranges[i].first, ranges[i].last);
	}
	lw_words_look(&words);
	words.can_skip = words.can_skip && roll(4);
	if (!is_orderly(&words))
		return "spans out of order";
	for (unsigned i = 0; i < nr; i++) {
		if (!is_in(&words, ranges[i].first) || !is_in(&words, ranges[i].last))
			return "a block outside of the spans";
	}
	memset(page, 0, PAGE);
	for (uint64_t i = roll(30); i > 0; i--) {
		uint64_t word = random_word(ranges, nr), at = roll(PAGE - 8);

		memcpy((char *)page + at, &word, 8);
		at = (uint64_t)(from - (uintptr_t)page) + (bytes > 8 ? roll(bytes - 7) : 0);
		if (bytes >= 8)
			memcpy((char *)page + at, &word, 8);
	}
	lw_words_visit(&words, from, to, note, &found);
	for (uintptr_t at = LW_ALIGN_UP(from, (uintptr_t)4); at + 8 <= to; at += 4) {
		uint64_t word;

		memcpy(&word, (const void *)at, sizeof(word));
		if (!is_in(&words, word))
			continue;
		if (nr_slow >= found.nr || found.at[nr_slow] != at)
			return "a word was passed over";
		nr_slow++;
	}
	if (nr_slow != found.nr)
		return "a word was found that is none";
	if (bytes > LW_WORDS_SHORT_BYTES)
		return NULL;
	nr_listed = lw_words_list(&words, from, to, listed);
	return nr_listed == found.nr && !memcmp(listed, found.at, nr_listed * sizeof(*listed)) ? NULL : "a short stretch's list differs";
}

static void test_against_slow(void)
{
	char *room = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *wrong = NULL;
	int round;

	if (room == MAP_FAILED || mprotect(room + PAGE, PAGE, PROT_READ | PROT_WRITE))
		abort();
	for (round = 0; round < ROUNDS && !wrong; round++)
		wrong = compare(room + PAGE);
	ok(!wrong, "%d random stretches, as a slow search has it%s%s", round, wrong ? ": " : "", wrong ? wrong : "");
	(void)munmap(room, 3 * PAGE);
}

static void test_gaps(void)
{
	struct lw_words words = { 0 };

	for (uint64_t i = 0; i < 1000; i++)
		lw_words_add(&words, UINT64_C(0x555500000000) + i * 100000, UINT64_C(0x555500000000) + i * 100000 + 40);
	lw_words_add(&words, UINT64_C(0x7f0000000000), UINT64_C(0x7f0000100000));
	lw_words_add(&words, UINT64_C(0x7f8000000000), UINT64_C(0x7f8000100000));
	ok(!is_in(&words, UINT64_C(0x6f0000000000)) && !is_in(&words, UINT64_C(0x7f4000000000)), "the largest gaps stay gaps");
	words.nr = 0;
	lw_words_visit(&words, (uintptr_t)&words, (uintptr_t)(&words + 1), NULL, NULL);
	ok(true, "no block, nothing to look for");
}

int main(void)
{
	test_against_slow();
	test_gaps();
	return done();
}
