/* SPDX-License-Identifier: MIT */
/* ages.h - the birth of the oldest block of each site, found by visiting all blocks; for the helper. */
#ifndef LW_LIVE_AGES_H
#define LW_LIVE_AGES_H

#include "preload/record/blocks.h"

struct lw_ages {
	uint32_t *inverted; /* by site: ~ms of the oldest block; 0, as new memory is: none, or unknown */
	uint32_t max_sites;
	uint64_t next_ns;    /* not before this time */
	uint64_t inherited;  /* blocks of a parent, seen in the last visit */
	struct lw_blocks_room room;
};

/* Looks at all blocks if it is time for it: seldom enough to take 1 % of a core at most. */
void lw_ages_refresh(struct lw_ages *ages);

/* Looks once more, and writes the answer into the region: the target is dead. */
void lw_ages_complete_region(struct lw_ages *ages);

#endif
