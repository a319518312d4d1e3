/* SPDX-License-Identifier: MIT */
/*
 * growth.c - the tests behind growth.h.
 *
 * Where nothing was measured for long, nothing was allocated (that is when samples are taken), so the
 * last value is carried on: without that, a busy minute before an idle day would look like growth.
 * Long series are thinned to means first, so that a test costs at most some ten thousand pairs.
 *
 * Mann-Kendall counts pairs that rise against pairs that fall, so no outlier matters to it; but it
 * takes neighbours as independent. Therefore the second test: residuals of the line, their
 * autocorrelation at distance one (with the usual correction of its bias in short series), and the
 * error of the slope widened by what an AR(1) process of that kind would make of it.
 */
#include "snapshot/model/growth.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "snapshot/model/shape.h"

enum {
	MAX_MEASURED = 128, /* longer series are thinned */
	FILL_CELLS = 64,    /* a longer pause than some of these parts of the time is filled */
	MAX_POINTS = MAX_MEASURED + FILL_CELLS,
	MAX_PAIRS = MAX_POINTS * (MAX_POINTS - 1) / 2,
	LEAST_LEVELS = 6,
	LEAST_PART = 4, /* points of the last third */
};

static const double pause_cells = 2.5;
static const double startup_part = 0.1;
static const double last_part = 2.0 / 3;
static const double least_z = 3.0902;	   /* one-sided p = 0.001 */
static const double least_envelope = 0.2;  /* of the whole gain, over the first two thirds */
static const double least_recent = 0.1;	   /* slope of the last third, of the whole slope */
static const double least_last_rise = 0.5;  /* from the second third's mean to the last's, of the one before */
static const double least_first_rise = 0.35; /* the other way round */
static const double most_unevenness = 2.5;  /* of a rise whose thirds differ by more than that */
static const double bounded_recent = 0.1;  /* slope of the last third, where a rise is over */
static const double level_part = 0.002;	   /* of the gain: a smaller step is no level */
static const double most_correlation = 0.97;

struct series {
	const struct growth_point *points;
	size_t nr;
};

static double span_of(struct series series)
{
	return series.nr ? series.points[series.nr - 1].s - series.points[0].s : 0;
}

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
			for (double s = in[i - 1].s + cell;
				s < in[i].s - cell / 2 && nr_out + nr - i < MAX_POINTS; s += cell)
				out[nr_out++] = (struct growth_point){s, in[i - 1].bytes};
		out[nr_out++] = in[i];
	}
	return nr_out;
}

/* The points of [from, to] of the time. */
static struct series part_of(struct series series, double from, double to)
{
	double begin = series.points[0].s, span = span_of(series);
	size_t first = 0, end = series.nr;

	while (first < series.nr && series.points[first].s < begin + from * span)
		first++;
	while (end > first && series.points[end - 1].s > begin + to * span)
		end--;
	return (struct series){series.points + first, end - first};
}

/* ---- statistics ---- */

static void swap(double *a, double *b)
{
	double kept = *a;

	*a = *b;
	*b = kept;
}

/* The k-th smallest; the values change their order. */
static double select_kth(double *values, ptrdiff_t nr, ptrdiff_t k)
{
	ptrdiff_t low = 0, high = nr - 1;

	while (low < high) {
		double pivot = values[low + (high - low) / 2];
		ptrdiff_t i = low, j = high;

		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i <= j)
				swap(&values[i++], &values[j--]);
		}
		if (k > j && k < i)
			break;
		low = k <= j ? low : i;
		high = k <= j ? j : high;
	}
	return values[k];
}

/* Theil-Sen: the median of the slopes of all pairs. */
static double slope_of(struct series series)
{
	double slopes[MAX_PAIRS];
	ptrdiff_t nr = 0;

	for (size_t i = 0; i < series.nr; i++)
		for (size_t j = i + 1; j < series.nr; j++) {
			double s = series.points[j].s - series.points[i].s;

			if (s > 0)
				slopes[nr++] =
					(series.points[j].bytes - series.points[i].bytes) / s;
		}
	return nr ? select_kth(slopes, nr, nr / 2) : 0;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* What ties take off the variance. */
static double tie_terms(struct series series)
{
	double values[MAX_POINTS], sum = 0;

	for (size_t i = 0; i < series.nr; i++)
		values[i] = series.points[i].bytes;
	qsort(values, series.nr, sizeof(values[0]), compare_doubles);
	for (size_t i = 0, same; i < series.nr; i += same) {
		for (same = 1; i + same < series.nr && values[i + same] <= values[i]; same++)
			;
		sum += (double)same * (double)(same - 1) * (double)(2 * same + 5);
	}
	return sum;
}

/* Mann-Kendall: how many standard deviations the rising pairs are ahead. */
static double mann_kendall_z(struct series series)
{
	double nr = (double)series.nr, score = 0, variance;

	for (size_t i = 0; i < series.nr; i++)
		for (size_t j = i + 1; j < series.nr; j++)
			score += (series.points[j].bytes > series.points[i].bytes) -
				 (series.points[j].bytes < series.points[i].bytes);
	variance = (nr * (nr - 1) * (2 * nr + 5) - tie_terms(series)) / 18;
	return score > 0 && variance > 0 ? (score - 1) / sqrt(variance) : 0;
}

/* The slope in units of its own error, neighbours taken as alike as they are. */
static double slope_z(struct series series, double slope)
{
	double residuals[MAX_POINTS], nr = (double)series.nr;
	double mean = 0, middle_s = 0, square = 0, product = 0, square_s = 0, correlation;

	for (size_t i = 0; i < series.nr; i++) {
		residuals[i] = series.points[i].bytes - slope * series.points[i].s;
		mean += residuals[i] / nr;
		middle_s += series.points[i].s / nr;
	}
	for (size_t i = 0; i < series.nr; i++) {
		double from_middle = series.points[i].s - middle_s;

		residuals[i] -= mean;
		square += residuals[i] * residuals[i];
		square_s += from_middle * from_middle;
		product += i ? residuals[i] * residuals[i - 1] : 0;
	}
	if (square <= 0 || square_s <= 0)
		return slope > 0 ? HUGE_VAL : 0;
	correlation = product / square;
	correlation += (1 + 4 * correlation) / nr;
	correlation = fmin(fmax(correlation, 0), most_correlation);
	return slope / sqrt(square / (nr - 2) / square_s * (1 + correlation) / (1 - correlation));
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
	return (size_t)(part_of(series, part, 2).points - series.points);
}

static size_t count_levels(const double *lower, size_t nr, double gain)
{
	size_t nr_levels = 0;
	double level = lower[0];

	for (size_t i = 1; i < nr; i++) {
		if (lower[i] - level <= level_part * gain)
			continue;
		nr_levels++;
		level = lower[i];
	}
	return nr_levels;
}

/* Where the line reaches back to from the last point within a twentieth of the gain. */
static void find_beginning(struct series whole, struct growth *growth)
{
	double lower[MAX_POINTS], gain, since_s;
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

static double mean_of(struct series series)
{
	double sum = 0;

	for (size_t i = 0; i < series.nr; i++)
		sum += series.points[i].bytes;
	return series.nr ? sum / (double)series.nr : 0;
}

/*
 * The last third's slope alone is too noisy to tell: the means of the thirds tell it better. Noise can bend those
 * too, where a leak gains only some amplitudes of it; then it is a leak unless another shape fits better.
 */
static bool has_even_thirds(struct series series, double slope, double recent)
{
	double first = mean_of(part_of(series, 0, 1 - last_part));
	double middle = mean_of(part_of(series, 1 - last_part, last_part));
	double last = mean_of(part_of(series, last_part, 1));

	return recent >= least_recent * slope &&
	       last - middle >= least_last_rise * (middle - first) &&
	       middle - first >= least_first_rise * (last - middle);
}

static bool is_even(struct series series, double slope, double recent)
{
	return has_even_thirds(series, slope, recent) ||
	       shape_unevenness(series.points, series.nr) <= most_unevenness;
}

static void judge_rise(struct series whole, struct series series, struct growth *growth)
{
	struct series last = part_of(series, last_part, 1);
	double lower[MAX_POINTS], z, gain;

	growth->bytes_per_s = slope_of(series);
	if (growth->bytes_per_s <= 0 || last.nr < LEAST_PART)
		return;
	z = fmin(mann_kendall_z(series), slope_z(series, growth->bytes_per_s));
	growth->p = p_of(z);
	growth->recent_per_s = slope_of(last);
	lower_envelope(series, lower);
	gain = growth->bytes_per_s * span_of(series);
	if (z < least_z || !is_even(series, growth->bytes_per_s, growth->recent_per_s))
		return;
	if (lower[index_at(series, last_part)] - lower[0] < least_envelope * gain)
		return;
	if (count_levels(lower, series.nr, gain) < LEAST_LEVELS)
		return;
	growth->kind = GROWTH_GROWING;
	find_beginning(whole, growth);
}

/* A rise, looked at from the very start, that ended before the last third. */
static void judge_bound(struct series whole, struct growth *growth)
{
	struct series early = part_of(whole, 0, last_part), last = part_of(whole, last_part, 1);
	double lower[MAX_POINTS], z, gain, slope, recent;
	size_t end;

	if (early.nr < GROWTH_LEAST_POINTS || last.nr < LEAST_PART)
		return;
	slope = slope_of(early);
	recent = slope_of(last);
	lower_envelope(whole, lower);
	end = index_at(whole, last_part);
	gain = lower[end] - lower[0];
	if (gain <= 0 || fabs(recent) * span_of(whole) > bounded_recent * gain)
		return;
	z = mann_kendall_z(early);
	if (slope <= 0 || z < least_z || count_levels(lower, end + 1, gain) < LEAST_LEVELS)
		return;
	growth->kind = GROWTH_BOUNDED;
	growth->p = p_of(z);
	growth->recent_per_s = recent;
	growth->gained_bytes = gain;
	while (end > 0 && lower[end - 1] >= lower[0] + gain * 0.95)
		end--;
	growth->since_s = whole.points[end].s;
}

void growth_judge(const struct growth_point *points, size_t nr_points, struct growth *growth)
{
	struct growth_point measured[MAX_MEASURED], filled[MAX_POINTS];
	struct series whole = {filled, 0}, settled;

	*growth = (struct growth){.kind = GROWTH_STEADY, .p = 1};
	if (nr_points < GROWTH_LEAST_POINTS || !is_sane(points, nr_points))
		return;
	whole.nr = fill_pauses(measured, thin(points, nr_points, measured), filled);
	settled = part_of(whole, startup_part, 1);
	if (span_of(whole) <= 0 || settled.nr < GROWTH_LEAST_POINTS)
		return;
	judge_rise(whole, settled, growth);
	if (growth->kind == GROWTH_STEADY)
		judge_bound(whole, growth);
}
