/* SPDX-License-Identifier: MIT */
/*
 * series.c - the statistics of series.h.
 *
 * Mann-Kendall counts pairs that rise against pairs that fall, so no outlier matters to it; but it
 * takes neighbours as independent. Therefore the second test: residuals of the line, their
 * autocorrelation at distance one (with the usual correction of its bias in short series), and the
 * error of the slope widened by what an AR(1) process of that kind would make of it.
 */
#include "snapshot/model/series.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_PAIRS = SERIES_MAX_POINTS * (SERIES_MAX_POINTS - 1) / 2 };

static const double most_correlation = 0.97;

double series_span(struct series series)
{
	return series.nr ? series.points[series.nr - 1].s - series.points[0].s : 0;
}

struct series series_part(struct series series, double from, double to)
{
	double begin = series.points[0].s, span = series_span(series);
	size_t first = 0, end = series.nr;

	while (first < series.nr && series.points[first].s < begin + from * span)
		first++;
	while (end > first && series.points[end - 1].s > begin + to * span)
		end--;
	return (struct series){series.points + first, end - first};
}

double series_mean(struct series series)
{
	double sum = 0;

	for (size_t i = 0; i < series.nr; i++)
		sum += series.points[i].bytes;
	return series.nr ? sum / (double)series.nr : 0;
}

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

double series_slope(struct series series)
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
	double values[SERIES_MAX_POINTS], sum = 0;

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

double series_mann_kendall(struct series series)
{
	double nr = (double)series.nr, score = 0, variance;

	for (size_t i = 0; i < series.nr; i++)
		for (size_t j = i + 1; j < series.nr; j++)
			score += (series.points[j].bytes > series.points[i].bytes) -
				 (series.points[j].bytes < series.points[i].bytes);
	variance = (nr * (nr - 1) * (2 * nr + 5) - tie_terms(series)) / 18;
	return score > 0 && variance > 0 ? (score - 1) / sqrt(variance) : 0;
}

double series_correlation(struct series series, double slope)
{
	double nr = (double)series.nr, mean = 0, last = 0, square = 0, product = 0, correlation;

	for (size_t i = 0; i < series.nr; i++)
		mean += (series.points[i].bytes - slope * series.points[i].s) / nr;
	for (size_t i = 0; i < series.nr; i++) {
		double residual = series.points[i].bytes - slope * series.points[i].s - mean;

		square += residual * residual;
		product += residual * last;
		last = residual;
	}
	correlation = square > 0 ? product / square : 0;
	correlation += (1 + 4 * correlation) / nr;
	return fmin(fmax(correlation, 0), most_correlation);
}

double series_slope_z(struct series series, double slope)
{
	double nr = (double)series.nr, mean = 0, middle_s = 0, square = 0, square_s = 0;
	double correlation = series_correlation(series, slope);

	for (size_t i = 0; i < series.nr; i++) {
		mean += (series.points[i].bytes - slope * series.points[i].s) / nr;
		middle_s += series.points[i].s / nr;
	}
	for (size_t i = 0; i < series.nr; i++) {
		double residual = series.points[i].bytes - slope * series.points[i].s - mean;
		double from_middle = series.points[i].s - middle_s;

		square += residual * residual;
		square_s += from_middle * from_middle;
	}
	if (square <= 0 || square_s <= 0)
		return slope > 0 ? HUGE_VAL : 0;
	return slope / sqrt(square / (nr - 2) / square_s * (1 + correlation) / (1 - correlation));
}

double series_walk_z(struct series series, double slope, size_t each)
{
	double square = 0, nr = (double)(series.nr - each);

	for (size_t i = each; i < series.nr; i++) {
		const struct growth_point *from = &series.points[i - each], *to = &series.points[i];
		double off = to->bytes - from->bytes - slope * (to->s - from->s);

		square += off * off / nr / (double)each;
	}
	return square > 0 ? slope * series_span(series) / sqrt(square * (double)(series.nr - 1))
			  : HUGE_VAL;
}
