/* SPDX-License-Identifier: MIT */
/*
 * scan_link.c - reading small blocks in order; see scan_link.h. No memory of its own: the size of a small block leaves 32
 * bits of its entry free, and its place in parents[] is not in use before it is reached.
 */
#include "preload/live/scan_link.h"

#include "preload/live/scan_resolve.h"

/* Larger ones are worth the wait for them, and often point to more than two. */
enum {
	MOST_BYTES = LW_WORDS_SHORT_BYTES,
	MOST_WORDS = LW_WORDS_SHORT_BYTES / LW_WORDS_STEP,
	PENDING = 128,
	AHEAD_BYTES = 2048, /* past the end of a page, where the processor's own prefetch stops */
};

_Static_assert((int)MOST_BYTES <= (int)LW_SCAN_MOST_LINKED, "the size of a linked block fits beside what it points to");

struct linking {
	struct lw_scan_marks *marks;
	uint32_t from;
	uint32_t nr;
	struct lw_scan_candidate pending[PENDING];
};

static void add_link(struct lw_scan_marks *marks, uint32_t from, uint32_t at)
{
	struct lw_scan_entry *entry = &marks->index.entries[from];

	if (at == LW_SCAN_NOTHING || at == from || !(entry->start & LW_SCAN_LINKED) || at == lw_scan_link(entry))
		return;
	if (lw_scan_link(entry) == LW_SCAN_NOTHING) {
		lw_scan_set_link(entry, at);
	} else if (!(entry->start & LW_SCAN_PAIR)) {
		entry->start |= LW_SCAN_PAIR;
		marks->parents[from] = at;
	} else if (marks->parents[from] != at) {
		lw_scan_unlink(marks, entry);
	}
}

/* In steps, so that the misses of the cache overlap. */
static LW_NOINLINE void link_all(struct linking *linking)
{
	struct lw_scan_marks *marks = linking->marks;

	for (uint32_t i = 0; i < linking->nr; i++) {
		struct lw_scan_candidate *candidate = &linking->pending[i];

		lw_scan_approach(marks, candidate);
		if (candidate->word && candidate->at != LW_SCAN_NOTHING)
			__builtin_prefetch(&marks->index.entries[candidate->at]);
	}
	for (uint32_t i = 0; i < linking->nr; i++)
		add_link(marks, linking->pending[i].from, lw_scan_resolve(marks, &linking->pending[i]));
	linking->nr = 0;
}

LW_INLINE void take_word(struct linking *linking, uint64_t word)
{
	const uint64_t *stretch = lw_scan_index_stretch(&linking->marks->index, word & LW_SCAN_ADDRESS);

	if (stretch)
		__builtin_prefetch(stretch);
	linking->pending[linking->nr++] = (struct lw_scan_candidate){ .word = word, .from = linking->from };
	if (linking->nr == PENDING)
		link_all(linking);
}

static bool may_link(const struct lw_scan_entry *entry)
{
	return !(entry->start & (LW_SCAN_BARE | LW_SCAN_UNOWNED)) && lw_scan_bytes(entry) <= MOST_BYTES;
}

void lw_scan_links_find(struct lw_scan_marks *marks)
{
	struct linking linking = { .marks = marks };
	const struct lw_map *here = NULL;
	uintptr_t found[MOST_WORDS];

	for (uint64_t at = 0; at < marks->index.nr; at++) {
		struct lw_scan_entry *entry = &marks->index.entries[at];
		uintptr_t from = lw_scan_start(entry), to = from + lw_scan_bytes(entry);
		unsigned nr;

		if (!may_link(entry))
			continue;
		if (!here || from < here->start || from >= here->end)
			here = lw_maps_at(&marks->maps, from);
		if (!here || from < here->start || to > here->end || !lw_map_is_plain(here))
			continue;
		entry->start |= LW_SCAN_LINKED;
		lw_scan_set_link(entry, LW_SCAN_NOTHING);
		marks->swept_bytes += to - from;
		linking.from = (uint32_t)at;
		__builtin_prefetch((const void *)(from + AHEAD_BYTES));
		nr = lw_words_list(&marks->index.words, from, to, found);
		for (unsigned i = 0; i < nr; i++) {
			uint64_t word;

			memcpy(&word, (const void *)found[i], sizeof(word));
			take_word(&linking, word);
		}
	}
	link_all(&linking);
}
