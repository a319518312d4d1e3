/* SPDX-License-Identifier: MIT */
/*
 * options_parts.h - what the files of the options share among themselves; others use options.h.
 */
#ifndef LW_SHARE_OPTIONS_PARTS_H
#define LW_SHARE_OPTIONS_PARTS_H

#include "preload/share/options.h"

/* NULL: no such option. */
const struct lw_option_spec *lw_options_find(const char *key);

/* yes, no, 1, 0 and their kind; false: none of them. */
bool lw_options_parse_bool(const char *text, uint64_t *out);

static inline bool lw_options_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Appends a byte while there is room; the length counts on, so that the caller sees what is lost.
 */
static inline void lw_options_put(char *out, size_t out_bytes, size_t *used, char c)
{
	if (*used + 1 < out_bytes)
		out[*used] = c;
	++*used;
}

#endif
