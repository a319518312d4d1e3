/* SPDX-License-Identifier: MIT */
/* scan_words.c - the spans that are looked for; see scan_words.h. */
#include "preload/live/scan_words.h"

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
