/* SPDX-License-Identifier: MIT */
/*
 * changes.h - what one reader of a region has been told, and what changed since: the live dump.
 *
 * The first tick says everything, with the past of each site, later ones the sites whose counters moved, as absolute values,
 * new modules, new or repeated events, and the totals. It remembers 8 bytes a site. Used by the
 * helper for each viewer, and by a viewer itself on the region of a target that does not answer.
 * Reads the region through emit.c, so a hostile one does no harm. Allocates nothing, calls nothing
 * that does: the helper has no libc.
 */
#ifndef LW_SHARE_CHANGES_H
#define LW_SHARE_CHANGES_H

#include "preload/share/dump.h"

struct lw_changes {
	struct dump dump;
	uint64_t *seen;		/* by site: digest of the counters last told, 0 never */
	uint32_t max_seen;	/* sites past it are told in every tick */
	const uint32_t *inverted_oldest; /* by site, ~ms; NULL: what the region has. max_seen entries */
	uint32_t nr_modules, nr_unloaded; /* told */
	bool is_greeted;
	uint64_t seen_events[LW_MAX_EVENTS], seen_marks[LW_MAX_MARKS]; /* counts told */
};

/* seen: max_seen zeros. False: the header is not one of ours. */
bool lw_changes_open(struct lw_changes *changes, const struct lw_region_header *region,
	uint64_t region_bytes, uint64_t *seen, uint32_t max_seen, lw_emit_sink_fn *sink, void *context);

/* The next tick says everything again. */
void lw_changes_reset(struct lw_changes *changes);

/* False: the sink stopped it. What was not told is told by the next one. */
bool lw_changes_tick(struct lw_changes *changes, uint64_t now_mono_ns);

/* Events and marks alone, with the stacks they name; new ones are to be sent at once, what happens again is
 * for the next tick: a mark may be passed at every request. */
bool lw_changes_has_events(struct lw_changes *changes);
bool lw_changes_events(struct lw_changes *changes);

#endif
