/* SPDX-License-Identifier: MIT */
/*
 * trend.h - what the past of a site says of it: growing, bounded, or held until exit. Pure.
 *
 * The series is the site's history in the region and, as the last point, what it held when exit
 * began, or holds at the end or now. After a kill the end is not known: then the last point lies at
 * most one interval of the history behind the last sample.
 */
#ifndef LW_SNAPSHOT_TREND_H
#define LW_SNAPSHOT_TREND_H

#include <stdbool.h>

#include "snapshot/model/growth.h"
#include "snapshot/model/model.h"

enum { TREND_POINTS = LW_HISTORY_SAMPLES + 1 };

struct trend {
	struct growth growth;
	struct growth_point points[TREND_POINTS];
	size_t nr_points;
	/* it had grown, and was freed only after exit began: what it held then */
	bool is_held;
	uint64_t held_bytes, held_blocks;
};

/* After model_finish(); a site without a history is steady. */
void trend_judge(const struct model *model, const struct model_site *site, bool is_killed,
	struct trend *trend);

#endif
