/* SPDX-License-Identifier: MIT */
/* scan_mark.c - the sweep and the flood; see scan_mark.h. The loop in scan_words.h is the price of a scan. */
#include "preload/live/scan_mark.h"

#include <sys/mman.h>

#include "preload/base/sys.h"

enum {
	TAG_BITS = 9,		   /* a tag of the top byte leaves the bits from 47 to 55 zero */
	WHOLE_BYTES = 64 << 10,	   /* larger blocks may have pages that were never touched */
	GIVE_BACK = 1 << 19, /* entries of the queue: 2 MiB, a huge page */
	AHEAD = 16,		   /* blocks of the queue */
};

bool lw_scan_marks_init(struct lw_scan_marks *marks)
{
	uint64_t bytes = (marks->index.nr + 1) * sizeof(*marks->queue);

	marks->queue = lw_scan_room(bytes);
	marks->parents = lw_scan_room(bytes);
	marks->index.used_bytes += bytes; /* of the queue what is in use at a time */
	marks->here = NULL;
	marks->here_in = LW_SCAN_NOTHING;
	return marks->queue && marks->parents;
}

static void push(struct lw_scan_marks *marks, uint32_t at)
{
	marks->queue[marks->nr_queued++] = at;
}

static void reach(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at, uint32_t from)
{
	if (entry->start & LW_SCAN_REACHED)
		return;
	entry->start |= LW_SCAN_REACHED;
	marks->parents[at] = from;
	if (!(entry->start & LW_SCAN_BARE))
		push(marks, at);
}

/* Met on the way from a leader. */
static void follow(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at)
{
	if (entry->start & (LW_SCAN_REACHED | LW_SCAN_INDIRECT) || at == marks->leader)
		return;
	entry->start |= LW_SCAN_INDIRECT;
	if (entry->start & LW_SCAN_LEADER) /* what it leads was followed already */
		entry->start &= ~LW_SCAN_LEADER;
	else
		push(marks, at);
}

static void drag(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at)
{
	if (!(entry->start & LW_SCAN_INDIRECT) || entry->start & LW_SCAN_DRAGGED)
		return;
	entry->start |= LW_SCAN_DRAGGED;
	if (!(entry->start & LW_SCAN_UNJUDGED)) {
		marks->dragged->dragged_bytes += lw_scan_bytes(entry);
		marks->dragged->dragged_blocks++;
	}
	push(marks, at);
}

/*
 * The head of a chunk of glibc lies in the last word of the block before it, so that the allocator's
 * lists of free chunks seem to point to blocks in use.
 */
static bool is_next_chunk(const struct lw_scan_entry *entry, uint64_t address)
{
	uint64_t start = lw_scan_start(entry), size = ((const uint64_t *)start)[-1] & ~UINT64_C(7);

	return address == start - 16 + size;
}

/* In an allocator's tables an address at the end of a block means the free one that begins there. */
static bool is_past_end(const struct lw_scan_marks *marks, const struct lw_scan_entry *entry, uint64_t address,
		uint32_t from)
{
	return from != LW_SCAN_NOTHING && marks->index.entries[from].start & LW_SCAN_TABLES &&
	       address - lw_scan_start(entry) >= lw_scan_bytes(entry);
}

static void take(struct lw_scan_marks *marks, const struct lw_scan_candidate *candidate)
{
	uint64_t word = candidate->word, address = word & LW_SCAN_ADDRESS;
	uint32_t at = lw_scan_index_search(&marks->index, candidate->at, address);
	struct lw_scan_entry *entry;

	if (at == LW_SCAN_NOTHING)
		return;
	entry = &marks->index.entries[at];
	/* what lies between blocks has no end that anybody points to: a module may begin there */
	if (entry->start & LW_SCAN_UNOWNED && address - lw_scan_start(entry) >= lw_scan_bytes(entry))
		return;
	if (is_past_end(marks, entry, address, candidate->from))
		return;
	if (word >> LW_SCAN_ADDRESS_BITS & ((1u << TAG_BITS) - 1) && address != lw_scan_start(entry))
		return;
	if (LW_UNLIKELY(marks->is_allocator) && !(entry->start & LW_SCAN_UNOWNED) && is_next_chunk(entry, address))
		return;
	if (marks->phase == LW_SCAN_REACHING)
		reach(marks, entry, at, candidate->from);
	else if (marks->phase == LW_SCAN_LEADING)
		follow(marks, entry, at);
	else
		drag(marks, entry, at);
}

static LW_NOINLINE void take_all(struct lw_scan_marks *marks)
{
	for (uint32_t i = 0; i < marks->nr_candidates; i++) {
		struct lw_scan_candidate *candidate = &marks->candidates[i];

		candidate->at = lw_scan_index_first(&marks->index, candidate->word & LW_SCAN_ADDRESS);
		if (candidate->at != LW_SCAN_NOTHING)
			__builtin_prefetch(&marks->index.entries[candidate->at], 1);
	}
	for (uint32_t i = 0; i < marks->nr_candidates; i++)
		take(marks, &marks->candidates[i]);
	marks->nr_candidates = 0;
}

static void consider(struct lw_scan_marks *marks, uint64_t word)
{
	const uint32_t *stretch = lw_scan_index_stretch(&marks->index, word & LW_SCAN_ADDRESS);

	if (stretch)
		__builtin_prefetch(stretch);
	marks->candidates[marks->nr_candidates++] = (struct lw_scan_candidate){ .word = word, .from = marks->here_in };
	if (marks->nr_candidates == LW_SCAN_CANDIDATES)
		take_all(marks);
}

static void consider_word(void *context, uint64_t word, uintptr_t at)
{
	(void)at;
	consider(context, word);
}

static void sweep(struct lw_scan_marks *marks, uintptr_t from, uintptr_t to)
{
	marks->swept_bytes += to > from ? to - from : 0;
	lw_words_visit(&marks->index.words, from, to, consider_word, marks);
}

static void sweep_stretch(void *context, uintptr_t from, uintptr_t to)
{
	sweep(context, from, to);
}

static void sweep_block(struct lw_scan_marks *marks, const struct lw_scan_entry *entry)
{
	uintptr_t from = lw_scan_start(entry), to = from + lw_scan_bytes(entry);
	const struct lw_map *here = marks->here;

	if (!here || from < here->start || from >= here->end)
		here = marks->here = lw_maps_at(&marks->maps, from);
	if (!here)
		return;
	if (to - from <= WHOLE_BYTES && from >= here->start && to <= here->end &&
			(here->flags & (LW_MAP_READ | LW_MAP_FILE | LW_MAP_SHARED)) == LW_MAP_READ)
		sweep(marks, from, to);
	else
		lw_maps_visit(&marks->maps, from, to, sweep_stretch, marks);
}

/* The next blocks of the queue lie anywhere: their first lines are fetched while others are swept. */
static void look_ahead(struct lw_scan_marks *marks)
{
	if (marks->nr_swept + AHEAD < marks->nr_queued)
		__builtin_prefetch(&marks->index.entries[marks->queue[marks->nr_swept + AHEAD]]);
	if (marks->nr_swept + AHEAD / 2 < marks->nr_queued)
		__builtin_prefetch((const void *)lw_scan_start(&marks->index.entries[marks->queue[marks->nr_swept + AHEAD / 2]]));
}

/* What was swept of the queue is not needed any more. */
static void give_back(struct lw_scan_marks *marks)
{
	uint64_t used = (marks->nr_queued - marks->nr_given_back) * sizeof(*marks->queue);
	uint64_t end = marks->nr_swept / GIVE_BACK * GIVE_BACK;

	if (used > marks->queue_bytes) {
		marks->index.used_bytes += used - marks->queue_bytes;
		marks->queue_bytes = used;
	}
	if (end > marks->nr_given_back && marks->phase == LW_SCAN_REACHING)
		(void)lw_syscall(SYS_madvise, marks->queue + marks->nr_given_back,
				(end - marks->nr_given_back) * sizeof(*marks->queue), MADV_DONTNEED);
	marks->nr_given_back = end;
}

/* All of it was swept: from the front again, which is in the cache. */
static void begin_anew(struct lw_scan_marks *marks)
{
	give_back(marks);
	marks->nr_queued = marks->nr_swept = marks->nr_given_back = 0;
}

static void flood(struct lw_scan_marks *marks)
{
	for (;;) {
		if (marks->nr_swept == marks->nr_queued) {
			begin_anew(marks);
			take_all(marks);
		}
		if (marks->nr_swept == marks->nr_queued)
			break;
		look_ahead(marks);
		if (marks->nr_swept - marks->nr_given_back >= GIVE_BACK)
			give_back(marks);
		marks->here_in = marks->queue[marks->nr_swept++];
		sweep_block(marks, &marks->index.entries[marks->here_in]);
	}
	marks->here_in = LW_SCAN_NOTHING;
}

void lw_scan_mark_word(struct lw_scan_marks *marks, uint64_t word)
{
	if ((word & LW_SCAN_ADDRESS) - marks->index.lo < marks->index.span)
		consider(marks, word);
}

void lw_scan_mark_range(struct lw_scan_marks *marks, uintptr_t from, uintptr_t to)
{
	sweep(marks, from, to);
	take_all(marks);
	marks->is_allocator = false;
}

void lw_scan_mark_entry(struct lw_scan_marks *marks, uint32_t at)
{
	reach(marks, &marks->index.entries[at], at, LW_SCAN_NOTHING);
}

void lw_scan_mark_rest(struct lw_scan_marks *marks)
{
	flood(marks);
}

static void find_leaders(struct lw_scan_marks *marks)
{
	marks->phase = LW_SCAN_LEADING;
	for (uint32_t at = 0; at < marks->index.nr; at++) {
		struct lw_scan_entry *entry = &marks->index.entries[at];

		/* memory that nobody allocated leads nothing: old words of the allocator's would */
		if (entry->start & (LW_SCAN_REACHED | LW_SCAN_INDIRECT | LW_SCAN_UNOWNED))
			continue;
		entry->start |= LW_SCAN_LEADER;
		marks->leader = at;
		sweep_block(marks, entry);
		flood(marks);
	}
}

static void drag_along(struct lw_scan_marks *marks, struct lw_scan_site *sites, uint32_t nr_sites)
{
	marks->phase = LW_SCAN_DRAGGING;
	for (uint32_t at = 0; at < marks->index.nr; at++) {
		struct lw_scan_entry *entry = &marks->index.entries[at];

		if (!(entry->start & LW_SCAN_LEADER) || entry->start & LW_SCAN_UNJUDGED ||
				lw_scan_site(entry) >= nr_sites)
			continue;
		marks->dragged = &sites[lw_scan_site(entry)];
		sweep_block(marks, entry);
		flood(marks);
	}
}

bool lw_scan_spare_few(struct lw_scan_marks *marks, uint64_t nr_hidden, uint32_t nr_sites)
{
	const uint64_t lost = LW_SCAN_INDIRECT | LW_SCAN_LEADER;
	uint32_t *counts = lw_scan_room((uint64_t)(nr_sites + 1) * sizeof(*counts));

	if (!counts)
		return false;
	find_leaders(marks);
	for (uint32_t at = 0; at < marks->index.nr; at++) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];

		if (entry->start & LW_SCAN_LEADER && lw_scan_site(entry) < nr_sites)
			counts[lw_scan_site(entry)]++;
	}
	marks->phase = LW_SCAN_REACHING;
	for (uint32_t at = 0; at < marks->index.nr; at++) {
		struct lw_scan_entry *entry = &marks->index.entries[at];
		bool is_spared = entry->start & LW_SCAN_LEADER && lw_scan_site(entry) < nr_sites &&
				 counts[lw_scan_site(entry)] <= nr_hidden;

		entry->start &= ~lost;
		if (is_spared)
			lw_scan_mark_entry(marks, at);
	}
	lw_scan_mark_rest(marks);
	return true;
}

void lw_scan_judge(struct lw_scan_marks *marks, struct lw_scan_site *sites, uint32_t nr_sites)
{
	find_leaders(marks);
	drag_along(marks, sites, nr_sites);
	for (uint32_t at = 0; at < marks->index.nr; at++) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];
		struct lw_scan_site *site;

		if (entry->start & (LW_SCAN_REACHED | LW_SCAN_UNJUDGED) || lw_scan_site(entry) >= nr_sites)
			continue;
		site = &sites[lw_scan_site(entry)];
		if (!site->lost_blocks && !site->indirect_blocks)
			marks->lost_sites[marks->nr_lost_sites++] = lw_scan_site(entry);
		if (entry->start & LW_SCAN_LEADER) {
			site->lost_bytes += lw_scan_bytes(entry);
			site->lost_blocks++;
		} else {
			site->indirect_bytes += lw_scan_bytes(entry);
			site->indirect_blocks++;
		}
	}
}

