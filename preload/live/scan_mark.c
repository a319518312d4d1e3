/* SPDX-License-Identifier: MIT */
/* scan_mark.c - the sweep and the flood; see scan_mark.h. The loop in scan_words.h is the price of a scan. */
#include "preload/live/scan_mark.h"

#include <sys/mman.h>

#include "preload/base/sys.h"
#include "preload/live/scan_resolve.h"

enum {
	WHOLE_BYTES = 64 << 10,	   /* larger blocks may have pages that were never touched */
	LEAST_CHUNK = 4096,  /* entries of the queue */
	MOST_CHUNK = 1 << 19, /* 2 MiB, a huge page */
	SHORT = 1024, /* entries of a queue that may as well grow on, in a list through linked blocks */
	AHEAD = 32,		   /* blocks of the queue */
};

static const uint32_t SECOND = LW_SCAN_SINGLE; /* no entry has so high a number */

bool lw_scan_marks_init(struct lw_scan_marks *marks)
{
	uint64_t bytes = (marks->index.nr + 1) * sizeof(*marks->parents);

	/* so that entries, index, parents and queue stay below 24 bytes a block whatever hangs on what */
	marks->chunk = marks->index.nr / 8 / LEAST_CHUNK * LEAST_CHUNK;
	marks->chunk = marks->chunk < LEAST_CHUNK ? LEAST_CHUNK : marks->chunk < MOST_CHUNK ? marks->chunk : MOST_CHUNK;
	marks->max_queued = marks->index.nr / 8 * 3 + LEAST_CHUNK;
	marks->queue = lw_scan_room(2 * bytes);
	marks->parents = lw_scan_room(bytes);
	marks->index.used_bytes += bytes; /* of the queue what is in use at a time */
	marks->left_first = 0;
	marks->left_end = (uint32_t)marks->index.nr;
	marks->here = NULL;
	marks->here_in = LW_SCAN_NOTHING;
	return marks->queue && marks->parents;
}

/* Whole arrays of blocks are met at once: then order matters less than memory. */
static LW_COLD void wait_longer(struct lw_scan_marks *marks, struct lw_scan_entry *entry)
{
	if (entry->start & LW_SCAN_PAIR)
		lw_scan_unlink(marks, entry);
	entry->start |= LW_SCAN_LATER;
	marks->nr_later++;
}

/* The second block of a pair stands behind it in the queue: its place in parents[] is not its own any more. */
LW_INLINE void push(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at)
{
	if (entry->start & LW_SCAN_LINKED && lw_scan_link(entry) == LW_SCAN_NOTHING)
		return;
	if (LW_UNLIKELY(marks->nr_queued - marks->nr_swept >= marks->max_queued)) {
		wait_longer(marks, entry);
		return;
	}
	marks->queue[marks->nr_queued++] = at;
	if (entry->start & LW_SCAN_PAIR)
		marks->queue[marks->nr_queued++] = marks->parents[at] | SECOND;
}

LW_INLINE void reach(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at, uint32_t from)
{
	if (entry->start & LW_SCAN_REACHED)
		return;
	entry->start |= LW_SCAN_REACHED;
	marks->nr_reached += !(entry->start & LW_SCAN_UNOWNED);
	if (!(entry->start & LW_SCAN_BARE))
		push(marks, entry, at);
	marks->parents[at] = from;
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
		push(marks, entry, at);
}

/* The same in the second pass: see find_leaders(). */
static void drag(struct lw_scan_marks *marks, struct lw_scan_entry *entry, uint32_t at)
{
	if (entry->start & (LW_SCAN_REACHED | LW_SCAN_DRAGGED) || at == marks->leader)
		return;
	entry->start &= ~LW_SCAN_LEADER;
	entry->start |= LW_SCAN_INDIRECT | LW_SCAN_DRAGGED;
	if (!(entry->start & LW_SCAN_UNJUDGED)) {
		marks->dragged->dragged_bytes += lw_scan_bytes(entry);
		marks->dragged->dragged_blocks++;
	}
	push(marks, entry, at);
}

LW_INLINE void arrive(struct lw_scan_marks *marks, uint32_t at, uint32_t from)
{
	struct lw_scan_entry *entry = &marks->index.entries[at];

	if (marks->phase == LW_SCAN_REACHING)
		reach(marks, entry, at, from);
	else if (marks->phase == LW_SCAN_LEADING)
		follow(marks, entry, at);
	else
		drag(marks, entry, at);
}

static void take(struct lw_scan_marks *marks, const struct lw_scan_candidate *candidate)
{
	uint32_t at = lw_scan_resolve(marks, candidate);

	if (at != LW_SCAN_NOTHING)
		arrive(marks, at, candidate->from);
}

static LW_NOINLINE void take_all(struct lw_scan_marks *marks)
{
	for (uint32_t i = 0; i < marks->nr_candidates; i++) {
		struct lw_scan_candidate *candidate = &marks->candidates[i];

		lw_scan_approach(marks, candidate);
		if (candidate->at == LW_SCAN_NOTHING)
			continue;
		__builtin_prefetch(&marks->index.entries[candidate->at], 1);
		__builtin_prefetch(&marks->parents[candidate->at], 1);
	}
	for (uint32_t i = 0; i < marks->nr_candidates; i++)
		take(marks, &marks->candidates[i]);
	marks->nr_candidates = 0;
}

static void consider(struct lw_scan_marks *marks, uint64_t word)
{
	const uint64_t *stretch = lw_scan_index_stretch(&marks->index, word & LW_SCAN_ADDRESS);

	if (stretch)
		__builtin_prefetch(stretch);
	marks->candidates[marks->nr_candidates++] = (struct lw_scan_candidate){ .word = word, .from = marks->here_in };
	if (marks->nr_candidates == LW_SCAN_CANDIDATES)
		take_all(marks);
}

/* What a block is known to point to. Others that were met before have their turn before it. */
LW_INLINE void consider_link(struct lw_scan_marks *marks, uint32_t at)
{
	if (LW_LIKELY(!marks->nr_candidates)) {
		arrive(marks, at, marks->here_in);
		return;
	}
	marks->candidates[marks->nr_candidates++] = (struct lw_scan_candidate){ .at = at, .from = marks->here_in };
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
	if (to - from <= WHOLE_BYTES && from >= here->start && to <= here->end && lw_map_is_plain(here))
		sweep(marks, from, to);
	else
		lw_maps_visit(&marks->maps, from, to, sweep_stretch, marks);
}

/* The next blocks of the queue lie anywhere: their first lines are fetched while others are swept. */
LW_INLINE void look_ahead(struct lw_scan_marks *marks)
{
	const struct lw_scan_entry *entry;
	uint32_t at;

	if (marks->nr_swept + AHEAD < marks->nr_queued)
		__builtin_prefetch(&marks->index.entries[marks->queue[marks->nr_swept + AHEAD] & ~SECOND]);
	if (marks->nr_swept + AHEAD / 2 >= marks->nr_queued)
		return;
	at = marks->queue[marks->nr_swept + AHEAD / 2];
	entry = &marks->index.entries[at & ~SECOND];
	if (at & SECOND) {
		__builtin_prefetch(&marks->parents[at & ~SECOND], 1);
	} else if (entry->start & LW_SCAN_LINKED) {
		__builtin_prefetch(&marks->index.entries[lw_scan_link(entry)], 1);
		__builtin_prefetch(&marks->parents[lw_scan_link(entry)], 1);
	} else {
		__builtin_prefetch((const void *)lw_scan_start(entry));
	}
}

/* What was swept of the queue is not needed any more. */
static void give_back(struct lw_scan_marks *marks)
{
	uint64_t used = (marks->nr_queued - marks->nr_given_back) * sizeof(*marks->queue);
	uint64_t end = marks->nr_swept / marks->chunk * marks->chunk;

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

/* Their turn has come: in the order of addresses, as many as may wait. */
static LW_COLD void queue_later(struct lw_scan_marks *marks)
{
	for (; marks->nr_later && marks->nr_queued < marks->max_queued; marks->later_at++) {
		struct lw_scan_entry *entry;

		if (marks->later_at == marks->index.nr)
			marks->later_at = 0;
		entry = &marks->index.entries[marks->later_at];
		if (!(entry->start & LW_SCAN_LATER))
			continue;
		entry->start &= ~LW_SCAN_LATER;
		marks->nr_later--;
		marks->queue[marks->nr_queued++] = marks->later_at;
	}
}

static void flood(struct lw_scan_marks *marks)
{
	for (;;) {
		const struct lw_scan_entry *entry;
		uint32_t at;

		if (marks->nr_swept == marks->nr_queued) {
			begin_anew(marks);
			take_all(marks);
			if (LW_UNLIKELY(marks->nr_later) && !marks->nr_queued)
				queue_later(marks);
		}
		if (marks->nr_swept == marks->nr_queued)
			break;
		look_ahead(marks);
		at = marks->queue[marks->nr_swept++];
		if (marks->nr_swept == marks->nr_queued && marks->nr_queued >= SHORT)
			begin_anew(marks);
		if (marks->nr_swept - marks->nr_given_back > marks->chunk)
			give_back(marks);
		if (at & SECOND) { /* of the block before it */
			consider_link(marks, at & ~SECOND);
			continue;
		}
		marks->here_in = at;
		entry = &marks->index.entries[at];
		if (entry->start & LW_SCAN_LINKED)
			consider_link(marks, lw_scan_link(entry));
		else
			sweep_block(marks, entry);
	}
	marks->here_in = LW_SCAN_NOTHING;
}

/* From an unreachable block on. */
static void flood_from(struct lw_scan_marks *marks, uint32_t at)
{
	const struct lw_scan_entry *entry = &marks->index.entries[at];

	if (!(entry->start & LW_SCAN_LINKED))
		sweep_block(marks, entry);
	else if (lw_scan_link(entry) != LW_SCAN_NOTHING)
		consider_link(marks, lw_scan_link(entry));
	if (entry->start & LW_SCAN_PAIR)
		consider_link(marks, marks->parents[at]);
	flood(marks);
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

static bool is_left(const struct lw_scan_marks *marks, uint32_t at)
{
	return !(marks->index.entries[at].start & (LW_SCAN_REACHED | LW_SCAN_UNOWNED));
}

/* In a program that loses nothing there is nothing left: then the passes that follow cost nothing. */
void lw_scan_mark_narrow(struct lw_scan_marks *marks)
{
	if (marks->nr_reached == marks->index.nr_owned)
		marks->left_first = marks->left_end;
	while (marks->left_first < marks->left_end && !is_left(marks, marks->left_first))
		marks->left_first++;
	while (marks->left_end > marks->left_first && !is_left(marks, marks->left_end - 1))
		marks->left_end--;
}

/*
 * First each block that none before it leads to begins to lead, and all behind it are followed. Of blocks that
 * lead to each other and that nothing else leads to, this finds one. But it may find others too, before what leads to
 * them. Of any two of which one leads to the other that one comes later, or the other would not have begun: so the
 * second pass goes backward, and whoever is met in it leads no more.
 */
static void find_leaders(struct lw_scan_marks *marks, struct lw_scan_site *sites, uint32_t nr_sites)
{
	struct lw_scan_site nobody = { 0 };

	marks->phase = LW_SCAN_LEADING;
	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
		struct lw_scan_entry *entry = &marks->index.entries[at];

		/* memory that nobody allocated leads nothing: old words of the allocator's would */
		if (entry->start & (LW_SCAN_REACHED | LW_SCAN_INDIRECT | LW_SCAN_UNOWNED))
			continue;
		entry->start |= LW_SCAN_LEADER;
		marks->leader = at;
		flood_from(marks, at);
	}
	marks->phase = LW_SCAN_DRAGGING;
	for (uint64_t at = marks->left_end; at-- > marks->left_first;) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];
		bool is_judged = !(entry->start & LW_SCAN_UNJUDGED) && lw_scan_site(entry) < nr_sites;

		if (!(entry->start & LW_SCAN_LEADER))
			continue;
		marks->dragged = is_judged && sites ? &sites[lw_scan_site(entry)] : &nobody;
		marks->leader = (uint32_t)at;
		flood_from(marks, (uint32_t)at);
	}
}

bool lw_scan_spare_few(struct lw_scan_marks *marks, uint64_t nr_hidden, uint32_t nr_sites)
{
	const uint64_t lost = LW_SCAN_INDIRECT | LW_SCAN_LEADER | LW_SCAN_DRAGGED;
	uint32_t *counts = lw_scan_room((uint64_t)(nr_sites + 1) * sizeof(*counts));

	if (!counts)
		return false;
	find_leaders(marks, NULL, 0);
	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];

		if (entry->start & LW_SCAN_LEADER && lw_scan_site(entry) < nr_sites)
			counts[lw_scan_site(entry)]++;
	}
	marks->phase = LW_SCAN_REACHING;
	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
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
	find_leaders(marks, sites, nr_sites);
	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
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

