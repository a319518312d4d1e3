/* SPDX-License-Identifier: MIT */
/*
 * lines.h - what is watched, as lines of text: pure, from numbers and a width to UTF-8.
 *
 * The screen and the plain columns show the same lines. No line is wider than asked for, counted
 * in columns of the terminal; what a stranger's file names contain cannot move the cursor.
 */
#ifndef LW_SNAPSHOT_LINES_H
#define LW_SNAPSHOT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LINES_BYTES = 2048, /* room for one line */
	LINES_WIDTH = 480,  /* more columns are not used */
	LINES_TREND = 16,   /* samples a row can show */
};

struct lines_row {
	uint64_t bytes, blocks;
	double share; /* 0..1 of all that is held */
	double change_bytes; /* by the last tick; NAN: not known yet, like the others that may be */
	int64_t since_bytes;
	double bytes_per_s; /* or NAN */
	uint64_t trend[LINES_TREND]; /* oldest first */
	size_t nr_trend;
	uint64_t oldest_ms; /* UINT64_MAX unknown */
	const char *verdict, *function, *file, *module; /* NULL unknown */
	bool has_lost; /* some of it is lost, whatever the verdict */
	unsigned line;
};

struct lines_head {
	int pid;
	const char *program, *how; /* "live", "read from its region: ...", "ended: ..." */
	uint64_t age_ns, interval_ms;
	uint64_t bytes, blocks, peak_bytes, rss_bytes, nr_sites;
	double bytes_per_s, allocs_per_s; /* or NAN */
	int64_t since_bytes;
	uint64_t since_ns; /* ago, the baseline */
	uint64_t nr_dropped, nr_lost, nr_mismatches, nr_errors;
};

struct lines_style {
	unsigned width;	   /* columns of a line, 40 at least */
	bool has_utf8;	   /* else the trend is ASCII */
	bool has_exact;	   /* bytes as numbers, wide columns */
	const char *sort;  /* the column marked in the heading; NULL none */
};

enum { LINES_HEADS = 3 };
/* Line i of LINES_HEADS. */
void lines_head(char out[LINES_BYTES], const struct lines_head *head, const struct lines_style *style,
	unsigned i);
void lines_heading(char out[LINES_BYTES], const struct lines_style *style);
void lines_row(char out[LINES_BYTES], const struct lines_row *row, const struct lines_style *style);

/* "0", "1023", "1.5K", "12.3M", "-" for NAN: at most 6 columns; is_signed puts a plus before what grew. */
const char *lines_amount(char out[16], double amount, bool is_signed);
/* "12s", "5m", "3h", "12d" */
const char *lines_age(char out[16], uint64_t ms);

#endif
