/* SPDX-License-Identifier: MIT */
/*
 * growth.h - does a series of measurements grow, did it grow and stop, or neither? Pure numbers.
 *
 * For the histories of an exit report as for the series of a viewer: points in order of time, at any
 * spacing. What makes a series `growing`, all of it:
 *
 *   significant   Mann-Kendall's test, corrected for ties, says p < 0.001; and so does Theil-Sen's
 *		   slope against its own error, which counts the fewer independent points the more the
 *		   noise is like its neighbours. Where they are so alike that it may be a walk without aim
 *		   (the length of a queue), the gain is also more than such steps come to by chance, or
 *		   almost nothing was ever given back;
 *   lasting	   the lower envelope rises, over the first two thirds and over the last third: what is
 *		   given back later was no growth, and the tooth of a saw begins where the last began;
 *   many times	   the envelope rises six times (of six, one may fall into the start-up): a few large blocks
 *		   are no trend;
 *   even	   the three thirds rise much alike, or a line fits as well as any shape of a rise that begins or
 *		   ends within the time (shape.h): not a step. And it is not levelling off: no curve that loses
 *		   most of its rate fits better than one that keeps it. What merely slows down grows, and
 *		   is said to slow down.
 *
 * What was there in the first tenth of the time is start-up and not looked at. `bounded` is what
 * rose in the same sense early on, has been flat for the last third, and stayed near that height from the time on that is
 * told. Few points are enough if they rise six times and never fall, over seconds in which nothing else was allocated.
 * test/unit/unit-growth.c measures how often this errs.
 */
#ifndef LW_SNAPSHOT_GROWTH_H
#define LW_SNAPSHOT_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GROWTH_LEAST_POINTS = 7, /* fewer say nothing */
};

enum growth_kind {
	GROWTH_STEADY, /* or not enough points to say anything else */
	GROWTH_BOUNDED,
	GROWTH_GROWING,
};

struct growth_point {
	double s; /* time */
	double bytes;
};

struct growth {
	enum growth_kind kind;
	double bytes_per_s;  /* Theil-Sen, of the whole but its start-up; 0: too few points */
	double recent_per_s; /* of the last third */
	double p;	     /* one-sided, the worse of both tests */
	double since_s;	     /* when the rise began; of bounded: when it ended */
	double until_s;	     /* time of the last point that was looked at */
	bool is_slowing;     /* growing, but less in the last third than before */
	double gained_bytes; /* since then; of bounded: until then */
};

/* Points in order of time; values that are not finite, or times that fall, make it steady. */
void growth_judge(const struct growth_point *points, size_t nr_points, struct growth *growth);

/*
 * The same where only the first nr_noted points are of those that are taken whenever something is allocated, and
 * the others are looks from outside: between two of them the site may have changed at any moment, and what is
 * carried on is made up. Where that is too much of the whole time, as in the first looks of a viewer that looks once
 * in ten minutes, what was noted, up to the first look, decides alone.
 */
void growth_judge_looks(const struct growth_point *points, size_t nr_points, size_t nr_noted,
	struct growth *growth);

#endif
