/* SPDX-License-Identifier: MIT */
/*
 * series.h - statistics of a short series of measurements that may rise. Pure numbers, no verdicts.
 *
 * Points are in order of time and finite; there are at most SERIES_MAX_POINTS.
 */
#ifndef LW_SNAPSHOT_SERIES_H
#define LW_SNAPSHOT_SERIES_H

#include <stddef.h>

#include "snapshot/model/growth.h"

enum { SERIES_MAX_POINTS = 192 };

struct series {
	const struct growth_point *points;
	size_t nr;
};

double series_span(struct series series);

/* The points of [from, to] of the time, which runs from 0 to 1; there is at least one point. */
struct series series_part(struct series series, double from, double to);

double series_mean(struct series series);

/* Theil-Sen: the median of the slopes of all pairs. */
double series_slope(struct series series);

/* Mann-Kendall: how many standard deviations the rising pairs are ahead. */
double series_mann_kendall(struct series series);

/* Of neighbours, around a line of that slope; 0 to nearly 1. */
double series_correlation(struct series series, double slope);

/* The slope in units of its own error, neighbours taken as alike as they are. */
double series_slope_z(struct series series, double slope);

/*
 * The whole gain in units of what a walk without aim would make of the differences over stretches of `each` points:
 * fewer than there are.
 */
double series_walk_z(struct series series, double slope, size_t each);

#endif
