/* SPDX-License-Identifier: MIT */
/* screen.h - what the screen shows at a moment; screen.c draws it, tty.c changes it. */
#ifndef LW_SNAPSHOT_SCREEN_H
#define LW_SNAPSHOT_SCREEN_H

#include "snapshot/view/view.h"

enum screen_mode {
	SCREEN_LIST,
	SCREEN_SITE, /* one site, its whole stack */
	SCREEN_HELP,
};

enum { SCREEN_NEWS_BYTES = 160 };

struct screen {
	struct view *view;
	enum screen_mode mode;
	enum watch_sort sort;
	char filter[WATCH_FILTER_BYTES];
	bool is_typing, is_paused, has_color, has_utf8, has_exact;
	uint32_t *order; /* of the last drawing */
	size_t nr_order, max_order;
	bool is_held;	  /* the cursor was moved: it follows its site; else it stays at the top */
	uint32_t chosen;  /* site under the cursor */
	size_t cursor;	  /* its place in the order */
	size_t top;	  /* first row drawn */
	size_t stack_top; /* the same, of the stack */
	struct source_scan scan; /* under way, if it has a region */
	char news[SCREEN_NEWS_BYTES]; /* said in the last line until the next key */
};

/* Terminal attributes; call once after initscr(). */
void screen_start(struct screen *screen);
/* patience_ms: how long names may be looked up; false: some are still to come. */
bool screen_draw(struct screen *screen, uint32_t patience_ms);
/* Rows of the list that fit. */
size_t screen_rows(void);

#endif
