/* SPDX-License-Identifier: MIT */
/*
 * scan_mark.h - following pointers: from the roots to what is reachable, then among what is not.
 *
 * A word counts as a pointer to a block if it holds an address inside it or one past its end, with
 * or without a tag in the top byte (or, to the very start, in the top 16 bits: NaN boxes). Words are looked at
 * at every multiple of 4, because packed structures hold pointers there. All of this errs to one side:
 * a number that looks like an address can hide a leak, but nothing that is pointed to is called lost.
 *
 * What is not reachable is put in groups: a block from which others are reached leads them, and they are
 * indirect. Of a ring one block leads, the one with the lowest address that nothing else leads.
 */
#ifndef LW_LIVE_SCAN_MARK_H
#define LW_LIVE_SCAN_MARK_H

#include "preload/live/scan_index.h"
#include "preload/live/scan_maps.h"
#include "preload/share/region.h"

enum lw_scan_phase {
	LW_SCAN_REACHING,
	LW_SCAN_LEADING,
	LW_SCAN_DRAGGING,
};

/* A word that may be a pointer. They are looked up some at a time, so that the misses of the cache overlap. */
struct lw_scan_candidate {
	uint64_t word; /* 0: `at` is the block, and not only where the search begins */
	uint32_t from; /* the entry it was found in */
	uint32_t at;   /* where the search begins */
};

enum { LW_SCAN_CANDIDATES = 128 };

struct lw_scan_marks {
	struct lw_scan_index index;
	struct lw_maps maps;
	enum lw_scan_phase phase;
	uint32_t *queue; /* entries in the order they were met; each stands in it once, the second block of a pair behind it */
	uint32_t *parents; /* by entry, of reached ones: the block it was first met in, or LW_SCAN_NOTHING: a root */
	uint64_t nr_queued, nr_swept;
	uint64_t max_queued;	/* that wait at a time; of more each entry itself says that it has to wait */
	uint64_t nr_later;	/* such entries */
	uint32_t later_at;	/* from which they are looked for next */
	uint64_t chunk;		/* entries of the queue that are given back at a time */
	uint64_t nr_given_back; /* the front of the queue, that is not there any more */
	uint64_t queue_bytes;	/* most that was ever in use */
	uint32_t here_in; /* the entry being swept */
	uint32_t nr_candidates;
	struct lw_scan_candidate candidates[LW_SCAN_CANDIDATES];
	uint64_t nr_reached; /* blocks */
	uint32_t left_first, left_end; /* what is not reached lies between these entries: see lw_scan_mark_narrow() */
	uint32_t leader;
	struct lw_scan_site *dragged; /* of the leader's site */
	uint32_t *lost_sites; /* room for the number of each site, filled by lw_scan_judge() */
	uint32_t nr_lost_sites;
	uint64_t swept_bytes;
	bool is_allocator; /* the memory at hand is glibc's own data: it points to the heads of chunks */
	const struct lw_map *here; /* the map the last block lay in */
};

/* What a linked block points to is forgotten: it will be read when its turn comes. */
LW_INLINE void lw_scan_unlink(struct lw_scan_marks *marks, struct lw_scan_entry *entry)
{
	marks->swept_bytes -= lw_scan_bytes(entry);
	lw_scan_set_link(entry, 0);
	entry->start &= ~(LW_SCAN_LINKED | LW_SCAN_PAIR);
}

/* The index is finished, the maps read. False: no memory. */
bool lw_scan_marks_init(struct lw_scan_marks *marks);

/*
 * What a single word, or readable memory, points to is reached; when all roots were looked at, lw_scan_mark_rest()
 * adds all that follows from it, by distance from the roots.
 */
void lw_scan_mark_word(struct lw_scan_marks *marks, uint64_t word);
void lw_scan_mark_range(struct lw_scan_marks *marks, uintptr_t from, uintptr_t to);
void lw_scan_mark_entry(struct lw_scan_marks *marks, uint32_t at);
void lw_scan_mark_rest(struct lw_scan_marks *marks);

/* After lw_scan_mark_rest(): narrows left_first and left_end, which most later passes go by, to what is not reached. */
void lw_scan_mark_narrow(struct lw_scan_marks *marks);

/*
 * After all roots, where registers of threads are not known: each may hold the only pointer to something. Of
 * sites with no more lost blocks than nr_hidden nothing is accused. False: no memory.
 */
bool lw_scan_spare_few(struct lw_scan_marks *marks, uint64_t nr_hidden, uint32_t nr_sites);

/* After all roots: sums by site into sites[nr_sites], which is zero; lost_sites has those with a sum. */
void lw_scan_judge(struct lw_scan_marks *marks, struct lw_scan_site *sites, uint32_t nr_sites);

#endif
