/* SPDX-License-Identifier: MIT */
/* trend.c - the series of a site, and what is made of it; see trend.h. */
#include "snapshot/model/trend.h"

enum { MS_PER_S = 1000, NS_PER_MS = 1000000 };

static double end_of(const struct model *model, const struct model_history *past, bool is_killed)
{
	uint64_t end_ms = model->hello.seconds_ns / NS_PER_MS, last, interval;

	if (past->exit_began_ms)
		return (double)past->exit_began_ms / MS_PER_S;
	if (is_killed && past->nr_samples > 1) {
		last = past->samples[past->nr_samples - 1].ms;
		interval = (last - past->samples[0].ms) / (past->nr_samples - 1);
		if (end_ms > last && end_ms - last > interval)
			end_ms = last + interval;
	}
	return (double)end_ms / MS_PER_S;
}

/* What came after exit began is the handlers' work, not the program's. */
static void make_series(const struct model *model, const struct model_site *site, bool is_killed,
	struct trend *trend)
{
	const struct model_history *past = site->history;
	double end_s = end_of(model, past, is_killed);
	uint64_t bytes = past->exit_began_ms ? past->held_bytes : site->live_bytes;

	for (uint32_t i = 0; i < past->nr_samples; i++) {
		double s = (double)past->samples[i].ms / MS_PER_S;

		if (s < end_s)
			trend->points[trend->nr_points++] =
				(struct growth_point){s, (double)past->samples[i].bytes};
	}
	trend->points[trend->nr_points++] = (struct growth_point){end_s, (double)bytes};
}

void trend_judge(const struct model *model, const struct model_site *site, bool is_killed,
	struct trend *trend)
{
	const struct model_history *past = site->history;
	size_t nr_noted;

	trend->nr_points = 0;
	trend->is_held = false;
	trend->held_bytes = trend->held_blocks = 0;
	trend->growth = (struct growth){.kind = GROWTH_STEADY, .p = 1};
	if (!past || past->nr_samples + 1 < GROWTH_LEAST_POINTS)
		return;
	make_series(model, site, is_killed, trend);
	nr_noted = past->nr_noted < trend->nr_points ? past->nr_noted : trend->nr_points - 1;
	growth_judge_looks(trend->points, trend->nr_points, nr_noted, &trend->growth);
	if (!past->exit_began_ms || past->held_blocks <= site->live_blocks)
		return;
	trend->held_bytes = past->held_bytes;
	trend->held_blocks = past->held_blocks;
	trend->is_held = trend->growth.kind == GROWTH_GROWING && !site->live_blocks;
}
