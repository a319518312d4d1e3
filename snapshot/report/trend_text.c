/* SPDX-License-Identifier: MIT */
/* trend_text.c - growth in words; see trend_text.h. */
#include "snapshot/report/trend_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "snapshot/report/format.h"

enum { NS_PER_S = 1000000000, NR_HEIGHTS = 8, MOST_OUTLOOK_S = 10 * 365 * 86400 };

/* A number from the statistics as a whole number; it may be anything. */
static uint64_t whole(double value)
{
	return value > 0 ? value < 9e18 ? (uint64_t)(value + 0.5) : UINT64_C(9000000000000000000) : 0;
}

static const char *format_s(char out[FORMAT_BYTES], double s)
{
	return format_ns(out, whole(fmin(s, 9e9) * NS_PER_S));
}

const char *trend_rate(char out[TREND_RATE_BYTES], double bytes_per_s)
{
	static const struct {
		double s;
		const char *name;
	} units[] = {{1, "s"}, {60, "min"}, {3600, "h"}, {86400, "day"}};
	double size = fabs(bytes_per_s);
	char bytes[FORMAT_BYTES];
	size_t unit = 0;

	while (unit + 1 < sizeof(units) / sizeof(units[0]) && size * units[unit].s < 1)
		unit++;
	(void)snprintf(out, TREND_RATE_BYTES, "%c%.32s/%s", bytes_per_s < 0 ? '-' : '+',
		format_size(bytes, whole(size * units[unit].s)), units[unit].name);
	return out;
}

static const char *p_text(double p)
{
	return p < 1e-6 ? "p < 0.000001" : p < 1e-4 ? "p < 0.0001" : "p < 0.001";
}

static void text_of_growing(char out[TREND_TEXT_BYTES], const struct growth *growth)
{
	char rate[TREND_RATE_BYTES], time[FORMAT_BYTES];

	(void)snprintf(out, TREND_TEXT_BYTES, "%s for %s, %s, %s",
		trend_rate(rate, growth->bytes_per_s), format_s(time, growth->until_s - growth->since_s),
		p_text(growth->p), growth->is_slowing ? "slowing down" : "not levelling off");
}

static void text_of_bounded(char out[TREND_TEXT_BYTES], const struct growth *growth)
{
	char bytes[FORMAT_BYTES], time[FORMAT_BYTES];

	(void)snprintf(out, TREND_TEXT_BYTES, "grew by %s until %s after the start, flat since",
		format_size(bytes, whole(growth->gained_bytes)), format_s(time, growth->since_s));
}

const char *trend_text(char out[TREND_TEXT_BYTES], const struct trend *trend)
{
	size_t used;

	out[0] = '\0';
	if (trend->growth.kind == GROWTH_GROWING)
		text_of_growing(out, &trend->growth);
	else if (trend->growth.kind == GROWTH_BOUNDED)
		text_of_bounded(out, &trend->growth);
	used = strlen(out);
	if (trend->is_held)
		(void)snprintf(
			out + used, TREND_TEXT_BYTES - used, "; freed only after exit began");
	return out;
}

const char *trend_outlook(char out[TREND_TEXT_BYTES], const struct growth *growth, uint64_t left_bytes)
{
	char bytes[FORMAT_BYTES], time[FORMAT_BYTES];

	out[0] = '\0';
	if (growth->kind == GROWTH_GROWING &&
		(double)left_bytes < growth->bytes_per_s * MOST_OUTLOOK_S)
		(void)snprintf(out, TREND_TEXT_BYTES, "the %s left run out in %s",
			format_size(bytes, left_bytes),
			format_s(time, (double)left_bytes / growth->bytes_per_s));
	return out;
}

/* The value at the end of each part of the time, or the last one known. */
static void sample_bars(
	const struct growth_point *points, size_t nr_points, double values[SPARKLINE_BARS])
{
	double begin = points[0].s, span = points[nr_points - 1].s - begin;
	size_t at = 0;

	for (int bar = 0; bar < SPARKLINE_BARS; bar++) {
		double until = begin + span * (bar + 1) / SPARKLINE_BARS;

		while (at + 1 < nr_points && points[at + 1].s <= until)
			at++;
		values[bar] = points[at].bytes;
	}
	values[SPARKLINE_BARS - 1] = points[nr_points - 1].bytes;
}

const char *trend_sparkline(
	char out[SPARKLINE_BYTES], const struct growth_point *points, size_t nr_points, bool is_utf8)
{
	static const char ascii[NR_HEIGHTS + 1] = "_.,:-=*#";
	double values[SPARKLINE_BARS], highest = 0;
	size_t used = 0;

	if (nr_points)
		sample_bars(points, nr_points, values);
	for (int bar = 0; nr_points && bar < SPARKLINE_BARS; bar++)
		highest = fmax(highest, values[bar]);
	for (int bar = 0; nr_points && bar < SPARKLINE_BARS; bar++) {
		int height = highest > 0 ? (int)(values[bar] / highest * (NR_HEIGHTS - 1) + 0.5) : 0;

		height = height < 0 ? 0 : height;
		if (is_utf8) { /* U+2581, one eighth of a block, to U+2588 */
			memcpy(out + used, "\xe2\x96", 2);
			out[used + 2] = (char)(0x81 + height);
		} else {
			out[used] = ascii[height];
		}
		used += is_utf8 ? 3 : 1;
	}
	out[used] = '\0';
	return out;
}

bool trend_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !(value && *value); i++)
		value = getenv(names[i]);
	return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}
