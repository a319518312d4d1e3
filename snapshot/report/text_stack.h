/* SPDX-License-Identifier: MIT */
/*
 * text_stack.h - the stacks of the text report, and the colours of all of it.
 */
#ifndef LW_SNAPSHOT_TEXT_STACK_H
#define LW_SNAPSHOT_TEXT_STACK_H

#include "snapshot/report/report.h"

enum text_paint {
	TEXT_PLAIN,
	TEXT_BOLD,
	TEXT_DIM,
	TEXT_RED,
	TEXT_GREEN,
	TEXT_YELLOW,
	TEXT_NR_PAINTS
};

struct text_writer {
	struct report *report;
	FILE *out;
	bool has_color;
	size_t nr_leaks;	   /* entries, sites that look the same put together */
	size_t nr_held;		   /* of them: freed by exit */
	struct report_stack stack; /* used again for each site; the caller frees its frames */
};

/* The escape sequence, or "" where there are no colours. */
const char *text_paint(const struct text_writer *w, enum text_paint paint);

/* The frames of a site, numbered, those a person wants unless all are asked for. */
void text_stack(struct text_writer *w, const struct model_site *site);

#endif
