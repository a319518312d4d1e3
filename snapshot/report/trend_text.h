/* SPDX-License-Identifier: MIT */
/*
 * trend_text.h - growth in words and as a line of small bars. Pure; for reports and viewers.
 */
#ifndef LW_SNAPSHOT_TREND_TEXT_H
#define LW_SNAPSHOT_TREND_TEXT_H

#include <stdbool.h>

#include "snapshot/model/trend.h"

enum {
	TREND_TEXT_BYTES = 256,
	TREND_RATE_BYTES = 64,
	SPARKLINE_BARS = 32,
	SPARKLINE_BYTES = SPARKLINE_BARS * 3 + 1,
};

/* "+12.3 KiB/s", "-1.5 MiB/day": in the unit of time that makes it at least one byte. */
const char *trend_rate(char out[TREND_RATE_BYTES], double bytes_per_s);

/*
 * Why the verdict is what it is:
 *   growing: "+12.3 KiB/s for 40.0 s, p < 0.001, not levelling off"
 *            or "slowing down", where the rate falls, but not to almost nothing
 *   held:    the same, and "freed only after exit began"
 *   bounded: "grew by 1.2 MiB until 12.0 s after the start, flat since"
 * "" when it is steady.
 */
const char *trend_text(char out[TREND_TEXT_BYTES], const struct trend *trend);

/* When left_bytes are used up: "the 7.8 GiB left run out in 6 d 2 h". "" if not growing, or in ten years. */
const char *trend_outlook(char out[TREND_TEXT_BYTES], const struct growth *growth, uint64_t left_bytes);

/* One bar for each equal part of the time, from 0 to the highest; in ASCII where there is no UTF-8. */
const char *trend_sparkline(
	char out[SPARKLINE_BYTES], const struct growth_point *points, size_t nr_points, bool is_utf8);

/* Does the environment say that texts are UTF-8? */
bool trend_is_utf8(void);

#endif
