/* SPDX-License-Identifier: MIT */
/*
 * group.h - sites that look the same to a person, as one entry of the text report.
 *
 * regcomp() allocates at twenty places inside libc; whoever forgot regfree() made one mistake, and
 * the frames that tell it from another are the program's own. So the text report puts together the
 * sites whose shown frames, hint and verdict are equal. With full_stacks nothing is left to put
 * together.
 */
#ifndef LW_SNAPSHOT_GROUP_H
#define LW_SNAPSHOT_GROUP_H

#include "snapshot/report/report.h"

struct group {
	const struct report_site *first; /* the worst of them; its stack stands for all */
	struct report_sum live;		 /* nr_sites: how many were put together; held ones: at exit */
	struct report_sum dragged;	 /* lost: what only these blocks point to */
	struct report_sum lost;		 /* of live: nothing points to it */
	struct report_sum indirect;	 /* of live: only lost memory points to it */
	uint64_t alloc_bytes, alloc_blocks;
	uint32_t first_ms, oldest_ms;
	uint32_t kinds; /* bit 1 << enum lw_kind */
};

/* The groups of report->sites[from, to), worst first; the caller frees them. */
struct group *group_sites(struct report *report, size_t from, size_t to, size_t *nr_groups);

#endif
