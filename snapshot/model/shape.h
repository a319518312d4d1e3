/* SPDX-License-Identifier: MIT */
/*
 * shape.h - does a series that rises rise evenly, or is it a rise that begins or ends within the time?
 *
 * A straight line is held against the shapes of what is no leak: steps, caches that fill and stop,
 * pools that level off. Pure.
 */
#ifndef LW_SNAPSHOT_SHAPE_H
#define LW_SNAPSHOT_SHAPE_H

#include <stddef.h>

#include "snapshot/model/growth.h"

/*
 * How much better the best of those shapes fits than the line does, as twice a logarithm of likelihoods: below
 * 2 or 3 it might be chance. Times rise, from the first to the last by more than 0.
 */
double shape_unevenness(const struct growth_point *points, size_t nr_points);

/*
 * In the same measure, how much better a rise fits that loses four fifths of its rate or more than one that keeps
 * nearly half of it, or is a line.
 */
double shape_levelling(const struct growth_point *points, size_t nr_points);

#endif
