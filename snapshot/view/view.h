/* SPDX-License-Identifier: MIT */
/*
 * view.h - watching a process, or the file of a watch, for a person or a script.
 *
 * feed.c brings the records in, watch.c makes sense of them over time, lines.c makes text of that;
 * plain.c prints a block of lines or a JSON object each tick, tty.c keeps a screen.
 */
#ifndef LW_SNAPSHOT_VIEW_H
#define LW_SNAPSHOT_VIEW_H

#include <stdio.h>

#include "snapshot/source/live.h"
#include "snapshot/view/lines.h"
#include "snapshot/view/watch.h"

struct view {
	struct live *live;  /* NULL: a file */
	const char *name;   /* of the file, or the pid as text */
	struct watch watch;
	uint32_t interval_ms;
	FILE *save;	    /* all records go there too; NULL no */
	int save_error;	    /* why it took no more; 0 it does */
	bool has_ended;
	bool is_cut; /* a file that does not go on to the end of a tick */
	/* printed at the end of each tick of a file; NULL for a live process */
	void (*on_tick)(struct view *view);
	uint64_t nr_shown, max_shown; /* ticks; 0 no limit */
};

struct view_settings {
	const char *what; /* PID or file */
	bool is_pid, is_json, has_exact;
	uint32_t interval_ms;
	uint64_t nr_ticks;    /* 0: until it ends */
	uint64_t top;	      /* rows printed, 0 all */
	const char *save;     /* file name, "-" stdout, NULL none */
	const struct lw_options *options;
	struct suppress *suppress;
	struct symbols *symbols;
};

/* 0, or the status to end with, when a message has gone to stderr. */
int view_open(struct view *view, const struct view_settings *settings);
void view_close(struct view *view);

/* The next tick of a process; a file is read to its end, with on_tick() for each. */
enum live_news view_wait(struct view *view, int fd, uint32_t wait_ms);

/* What the lines show. how: room for the words about the state. */
void view_head(struct view *view, struct lines_head *head, char how[160]);
void view_row(struct view *view, uint32_t site, struct lines_row *row);
/* Why its verdict is what it is, and when memory runs out; false: nothing to say. */
bool view_reason(struct view *view, uint32_t site, char *out, size_t out_bytes);

/* Columns, JSON, or only a saved file, tick after tick. */
int view_plain(const struct view_settings *settings);
/* The screen; -1: this file is not one of a watch, and wants a report. */
int view_screen(const struct view_settings *settings);

#endif
