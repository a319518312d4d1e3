/* SPDX-License-Identifier: MIT */
/*
 * growth.c - the tests behind growth.h.
 *
 * Where nothing was measured for long, nothing was allocated (that is when samples are taken), so
 * the last value is carried on: without that, a busy minute before an idle day would look like
 * growth. Long series are thinned to means first, so that a test costs at most some ten thousand
 * pairs.
 */
#include "snapshot/model/growth.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "snapshot/model/series.h"
#include "snapshot/model/shape.h"

enum {
	MAX_MEASURED = 128, /* longer series are thinned */
	FILL_CELLS = SERIES_MAX_POINTS - MAX_MEASURED, /* a pause longer than some is filled */
	LEAST_MEASURED = 12, /* behind the start-up; fewer if between them nothing was allocated */
	LEAST_LEVELS = 6,    /* that is, rises */
	LEAST_LATE_LEVELS = 5, /* of six one may fall into the start-up */
	WALK_PARTS = 4,
	WINDOW = 5,	/* points whose mean is taken where a plateau is looked at */
	LEAST_PART = 4, /* points of the last third */
	LEAST_LOOKS = 11, /* a stretch between two is no larger a part of the time */
};

static const double pause_cells = 2.5;
static const double startup_part = 0.1;
static const double last_part = 2.0 / 3;
static const double least_z = 3.0902;	  /* one-sided p = 0.001 */
static const double least_envelope = 0.2; /* of the whole gain, over the first two thirds */
static const double least_recent = 0.1;	  /* slope of the last third, of the whole slope */
static const double least_last_rise = 0.5;   /* to the last third's mean, of that to the second's */
static const double least_first_rise = 0.35; /* the other way round */
static const double most_unevenness = 8;     /* of a rise whose thirds differ by more than that */
static const double most_levelling = 0.4;    /* of a rise that may have lost most of its rate */
static const double slowing_rise = 0.8;	 /* in the same measure */
static const double slowing_slope = 0.5; /* of the last third, of the whole slope: too */
static const double least_pauses_s = 2;	 /* a series of few points lasts that long */
static const double least_alike = 0.7;	 /* correlation of what may be a walk */
static const double least_long_z = 5.2; /* over long stretches, where a walk would have made a few */
static const double most_back = 0.1;  /* of the gain: less was given back than a walk does */
static const double coarse_part = 1.0 / 16; /* of the gain: a step that counts, even an early one */
static const double plateau_back = 0.05;  /* of the gain, given back from the highest to the end */
static const double most_noise = 3.5;	  /* standard deviations */
static const double bounded_recent = 0.1; /* slope of the last third, where a rise is over */
static const double level_part = 0.002;	  /* of the gain: a smaller step is no level */

/* ---- preparing ---- */

static bool is_sane(const struct growth_point *points, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!isfinite(points[i].s) || !isfinite(points[i].bytes) ||
			(i && points[i].s < points[i - 1].s))
			return false;
	return true;
}

/* Means of so many neighbours that at most MAX_MEASURED are left. */
static size_t thin(const struct growth_point *points, size_t nr, struct growth_point *out)
{
	size_t each = (nr + MAX_MEASURED - 1) / MAX_MEASURED, nr_out = 0;

	for (size_t i = 0; i < nr; i += each) {
		size_t some = nr - i < each ? nr - i : each;
		struct growth_point sum = {0, 0};

		for (size_t j = i; j < i + some; j++) {
			sum.s += points[j].s;
			sum.bytes += points[j].bytes;
		}
		out[nr_out++] =
			(struct growth_point){sum.s / (double)some, sum.bytes / (double)some};
	}
	return nr_out;
}

static size_t fill_pauses(const struct growth_point *in, size_t nr, struct growth_point *out)
{
	double cell = nr ? (in[nr - 1].s - in[0].s) / FILL_CELLS : 0;
	size_t nr_out = 0;

	for (size_t i = 0; i < nr; i++) {
		if (i && cell > 0 && in[i].s - in[i - 1].s > pause_cells * cell)
			for (double s = in [i - 1].s + cell;
				s < in[i].s - cell / 2 && nr_out + nr - i < SERIES_MAX_POINTS;
				s += cell)
				out[nr_out++] = (struct growth_point){s, in[i - 1].bytes};
		out[nr_out++] = in[i];
	}
	return nr_out;
}

static double p_of(double z)
{
	return erfc(z / sqrt(2)) / 2;
}

/* ---- envelope ---- */

/* At each point, the least that is still to come: what is never given back. */
static void lower_envelope(struct series series, double *lower)
{
	double least = HUGE_VAL;

	for (size_t i = series.nr; i-- > 0;) {
		least = fmin(least, series.points[i].bytes);
		lower[i] = least;
	}
}

static size_t index_at(struct series series, double part)
{
	return (size_t)(series_part(series, part, 2).points - series.points);
}

static size_t count_levels(const double *lower, size_t nr, double least)
{
	size_t nr_levels = 0;
	double level = lower[0];

	for (size_t i = 1; i < nr; i++) {
		if (lower[i] - level <= least)
			continue;
		nr_levels++;
		level = lower[i];
	}
	return nr_levels;
}

/* The most that was given back of the highest value so far. */
static double given_back(struct series series)
{
	double highest = -HUGE_VAL, back = 0;

	for (size_t i = 0; i < series.nr; i++) {
		highest = fmax(highest, series.points[i].bytes);
		back = fmax(back, highest - series.points[i].bytes);
	}
	return back;
}

/* Where the line reaches back to from the last point within a twentieth of the gain. */
static void find_beginning(struct series whole, struct growth *growth)
{
	double lower[SERIES_MAX_POINTS], gain, since_s;
	size_t i = 0;

	lower_envelope(whole, lower);
	gain = lower[whole.nr - 1] - lower[0];
	while (i + 1 < whole.nr && lower[i + 1] <= lower[0] + gain / 20)
		i++;
	since_s = whole.points[i].s - (lower[i] - lower[0]) / growth->bytes_per_s;
	growth->since_s = i ? fmax(since_s, whole.points[0].s) : fmax(since_s, 0);
	growth->gained_bytes = gain;
}

/* ---- verdicts ---- */

/*
 * The last third's slope alone is too noisy to tell: the means of the thirds tell it better. Noise
 * can bend those too, where a leak gains only some amplitudes of it; then it is a leak unless
 * another shape fits better.
 */
static bool has_even_thirds(struct series series, double slope, double recent)
{
	double first = series_mean(series_part(series, 0, 1 - last_part));
	double middle = series_mean(series_part(series, 1 - last_part, last_part));
	double last = series_mean(series_part(series, last_part, 1));

	return recent >= least_recent * slope &&
	       last - middle >= least_last_rise * (middle - first) &&
	       middle - first >= least_first_rise * (last - middle);
}

static bool is_even(struct series series, double slope, double recent)
{
	if (shape_levelling(series.points, series.nr) > most_levelling)
		return false;
	return has_even_thirds(series, slope, recent) ||
	       shape_unevenness(series.points, series.nr) <= most_unevenness;
}

/* Less in the last third than before: in its mean, or in its own slope. */
static bool is_slowing(struct series series, double slope, double recent)
{
	double middle = series_mean(series_part(series, 1 - last_part, last_part));

	if (recent < slowing_slope * slope)
		return true;
	return series_mean(series_part(series, last_part, 1)) - middle <
	       slowing_rise * (middle - series_mean(series_part(series, 0, 1 - last_part)));
}

/* A queue that happens to be longer at the end goes up and down by as much on the way. */
static bool may_be_walk(struct series series, double slope)
{
	return series_correlation(series, slope) > least_alike &&
	       series_walk_z(series, slope, 1) < least_z &&
	       series_walk_z(series, slope, series.nr / WALK_PARTS) < least_long_z &&
	       given_back(series) > most_back * slope * series_span(series);
}

/* Rises enough, not a few large blocks. Of equal ones the first may have come while the program
 * started. */
static bool has_levels(struct series whole, const double *lower, size_t nr, double gain)
{
	double all[SERIES_MAX_POINTS];
	size_t nr_late = count_levels(lower, nr, level_part * gain);

	if (nr_late != LEAST_LATE_LEVELS)
		return nr_late >= LEAST_LEVELS;
	lower_envelope(whole, all);
	return count_levels(all, whole.nr, coarse_part * (all[whole.nr - 1] - all[0])) >=
	       LEAST_LEVELS;
}

static void judge_rise(struct series whole, struct series series, struct growth *growth)
{
	struct series last = series_part(series, last_part, 1);
	double lower[SERIES_MAX_POINTS], z, gain;

	growth->bytes_per_s = series_slope(series);
	if (growth->bytes_per_s <= 0 || last.nr < LEAST_PART)
		return;
	z = fmin(series_mann_kendall(series), series_slope_z(series, growth->bytes_per_s));
	growth->p = p_of(z);
	growth->recent_per_s = series_slope(last);
	lower_envelope(series, lower);
	gain = growth->bytes_per_s * series_span(series);
	if (z < least_z || may_be_walk(series, growth->bytes_per_s))
		return;
	if (lower[index_at(series, last_part)] - lower[0] < least_envelope * gain)
		return;
	if (!has_levels(whole, lower, series.nr, gain))
		return;
	if (!is_even(series, growth->bytes_per_s, growth->recent_per_s))
		return;
	growth->kind = GROWTH_GROWING;
	growth->is_slowing = is_slowing(series, growth->bytes_per_s, growth->recent_per_s);
	find_beginning(whole, growth);
}

/* Of the noise, told by neighbours. */
static double deviation_of(struct series series)
{
	double sum = 0;

	for (size_t i = 1; i < series.nr; i++)
		sum += fabs(series.points[i].bytes - series.points[i - 1].bytes);
	return series.nr > 1 ? sum / (double)(series.nr - 1) * sqrt(3.141592653589793) / 2 : 0;
}

/* Did the series itself stay where it ends, and not only what was never given back? */
static bool is_plateau(struct series series, double gain)
{
	double end, allowed = plateau_back * gain +
			      most_noise * deviation_of(series) * sqrt(2.0 / WINDOW);

	if (series.nr < WINDOW)
		return false;
	end = series_mean((struct series){series.points + series.nr - WINDOW, WINDOW});
	for (size_t i = 0; i + WINDOW <= series.nr; i++)
		if (fabs(series_mean((struct series){series.points + i, WINDOW}) - end) > allowed)
			return false;
	return true;
}

/* A rise, looked at from the very start, that ended before the last third. */
static void judge_bound(struct series whole, struct growth *growth)
{
	struct series early = series_part(whole, 0, last_part),
		      last = series_part(whole, last_part, 1);
	double lower[SERIES_MAX_POINTS], z, gain, slope, recent;
	size_t end;

	if (early.nr < LEAST_MEASURED || last.nr < LEAST_PART)
		return;
	slope = series_slope(early);
	recent = series_slope(last);
	lower_envelope(whole, lower);
	end = index_at(whole, last_part);
	gain = lower[end] - lower[0];
	if (gain <= 0 || fabs(recent) * series_span(whole) > bounded_recent * gain)
		return;
	z = series_mann_kendall(early);
	if (slope <= 0 || z < least_z ||
		count_levels(lower, end + 1, level_part * gain) < LEAST_LEVELS)
		return;
	while (end > 0 && lower[end - 1] >= lower[0] + gain * 0.95)
		end--;
	if (!is_plateau((struct series){whole.points + end, whole.nr - end}, gain))
		return;
	growth->kind = GROWTH_BOUNDED;
	growth->p = p_of(z);
	growth->recent_per_s = recent;
	growth->gained_bytes = gain;
	growth->since_s = whole.points[end].s;
}

/* Is there enough of it? Few points are, if they only rise and nothing was allocated between them.
 */
static bool is_measured(const struct growth_point *points, size_t nr_points)
{
	struct series measured = {points, nr_points};

	if (nr_points < GROWTH_LEAST_POINTS || !is_sane(points, nr_points))
		return false;
	return series_part(measured, startup_part, 1).nr >= LEAST_MEASURED ||
	       (series_span(measured) >= least_pauses_s && given_back(measured) <= 0);
}

void growth_judge(const struct growth_point *points, size_t nr_points, struct growth *growth)
{
	struct growth_point measured[MAX_MEASURED], filled[SERIES_MAX_POINTS];
	struct series whole = {filled, 0}, settled;

	*growth = (struct growth){.kind = GROWTH_STEADY, .p = 1};
	growth->until_s = nr_points ? points[nr_points - 1].s : 0;
	if (!is_measured(points, nr_points))
		return;
	whole.nr = fill_pauses(measured, thin(points, nr_points, measured), filled);
	settled = series_part(whole, startup_part, 1);
	if (series_span(whole) <= 0 || settled.nr < LEAST_MEASURED)
		return;
	judge_rise(whole, settled, growth);
	if (growth->kind == GROWTH_STEADY)
		judge_bound(whole, growth);
}

/* No stretch is long in which the site changed and nobody looked. */
static bool are_looks_close(const struct growth_point *points, size_t nr_points, size_t nr_noted)
{
	double most_s = series_span((struct series){points, nr_points}) / LEAST_LOOKS;

	for (size_t i = nr_noted + 1; i < nr_points; i++)
		if (fabs(points[i].bytes - points[i - 1].bytes) > 0 && points[i].s - points[i - 1].s > most_s)
			return false;
	return true;
}

void growth_judge_looks(const struct growth_point *points, size_t nr_points, size_t nr_noted,
	struct growth *growth)
{
	if (!are_looks_close(points, nr_points, nr_noted))
		nr_points = nr_noted + 1;
	growth_judge(points, nr_points, growth);
}
