/* SPDX-License-Identifier: MIT */
/*
 * shape.c - fits of shapes to a series; see shape.h.
 *
 * With noise of one size everywhere, twice the logarithm of the ratio of likelihoods of two fits is
 * the number of points times the logarithm of the ratio of what they leave over. Points that are
 * like their neighbours count for less: an AR(1) process of correlation r is worth (1 - r) / (1 +
 * r) as many.
 */
#include "snapshot/model/shape.h"

#include <math.h>

enum {
	CELLS = 12, /* places where a rise may begin or end */
};

static const double first_decay = 0.05; /* of levelling off, as parts of the time */
static const double last_decay = 0.4;
static const double next_decay = 1.4;
static const double level_decay = 0.65;	    /* a fifth of the first rate is left at the end */
static const double first_slow_decay = 1.3; /* nearly half */
static const double last_slow_decay = 4;

/* From 0 to 1 between `from` and `to`; from < 0: it levels off, by 1/e more in each `to`. */
struct shape {
	double from, to;
};

struct fit {
	double level, gain;
	double left; /* sum of squares of what is not explained */
};

static double time_of(const struct growth_point *points, size_t nr, size_t i)
{
	return (points[i].s - points[0].s) / (points[nr - 1].s - points[0].s);
}

static double height_at(const struct shape *shape, double time)
{
	if (shape->from < 0)
		return 1 - exp(-time / shape->to);
	if (time <= shape->from)
		return 0;
	return time >= shape->to ? 1 : (time - shape->from) / (shape->to - shape->from);
}

/* Least squares; only rises count. */
static struct fit fit_shape(const struct growth_point *points, size_t nr, struct shape shape)
{
	double mean_x = 0, mean_y = 0, square_x = 0, square_y = 0, product = 0;
	struct fit fit = {0, 0, 0};

	for (size_t i = 0; i < nr; i++) {
		mean_x += height_at(&shape, time_of(points, nr, i)) / (double)nr;
		mean_y += points[i].bytes / (double)nr;
	}
	for (size_t i = 0; i < nr; i++) {
		double x = height_at(&shape, time_of(points, nr, i)) - mean_x,
		       y = points[i].bytes - mean_y;

		square_x += x * x;
		square_y += y * y;
		product += x * y;
	}
	if (square_x > 0 && product > 0)
		fit.gain = product / square_x;
	fit.level = mean_y - fit.gain * mean_x;
	fit.left = fmax(square_y - fit.gain * product, 0);
	return fit;
}

/* Of neighbours, around the fit. */
static double correlation_of(const struct growth_point *points, size_t nr, struct shape shape)
{
	struct fit fit = fit_shape(points, nr, shape);
	double last = 0, square = 0, product = 0;

	for (size_t i = 0; i < nr; i++) {
		double off = points[i].bytes - fit.level -
			     fit.gain * height_at(&shape, time_of(points, nr, i));

		square += off * off;
		product += off * last;
		last = off;
	}
	return square > 0 && product > 0 ? product / square : 0;
}

/* The one of the decays of which least is left over. */
static double best_decay(
	const struct growth_point *points, size_t nr, double from, double to, double *left)
{
	double best = from;

	*left = HUGE_VAL;
	for (double decay = from; decay <= to; decay *= next_decay) {
		double this_left = fit_shape(points, nr, (struct shape){-1, decay}).left;

		if (this_left < *left) {
			*left = this_left;
			best = decay;
		}
	}
	return best;
}

/* Twice the logarithm of the ratio of likelihoods; below 0 where `better` is the worse one. */
static double compare(size_t nr, double correlation, double worse, double better)
{
	if (worse <= 0)
		return better > 0 ? -HUGE_VAL : 0;
	if (better <= 0)
		return HUGE_VAL;
	return (double)nr * (1 - correlation) / (1 + correlation) * log(worse / better);
}

double shape_unevenness(const struct growth_point *points, size_t nr_points)
{
	static const struct shape line = {0, 1};
	double line_left = fit_shape(points, nr_points, line).left, least;

	(void)best_decay(points, nr_points, first_decay, last_decay, &least);
	for (int from = 0; from < CELLS; from++)
		for (int to = from; to <= CELLS; to++)
			least = fmin(least,
				fit_shape(points, nr_points,
					(struct shape){(double)from / CELLS, (double)to / CELLS})
					.left);
	return compare(nr_points, correlation_of(points, nr_points, line), line_left, least);
}

double shape_levelling(const struct growth_point *points, size_t nr_points)
{
	double left, slow_left;
	double decay = best_decay(points, nr_points, first_decay, level_decay, &left);

	(void)best_decay(points, nr_points, first_slow_decay, last_slow_decay, &slow_left);
	slow_left = fmin(slow_left, fit_shape(points, nr_points, (struct shape){0, 1}).left);
	return compare(nr_points, correlation_of(points, nr_points, (struct shape){-1, decay}),
		slow_left, left);
}
