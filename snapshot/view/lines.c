/* SPDX-License-Identifier: MIT */
/* lines.c - numbers to columns; see lines.h. */
#include "snapshot/view/lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/report/format.h"

enum { MAX_CELL = 512 };

/* ---- cells ---- */

const char *lines_amount(char out[16], double amount, bool is_signed)
{
	static const char units[] = " KMGTPE";
	const char *sign = amount <= -0.5 ? "-" : is_signed && amount >= 0.5 ? "+" : "";
	double rest = fabs(amount);
	size_t unit = 0;

	if (isnan(amount)) {
		(void)snprintf(out, 16, "-");
		return out;
	}
	while (rest >= 999.5 && unit + 2 < sizeof(units)) {
		rest /= 1024;
		unit++;
	}
	if (!unit)
		(void)snprintf(out, 16, "%s%.0f", sign, rest);
	else
		(void)snprintf(out, 16, "%s%.*f%c", sign, rest < 99.95 ? 1 : 0, rest, units[unit]);
	return out;
}

const char *lines_age(char out[16], uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (ms == UINT64_MAX)
		(void)snprintf(out, 16, "-");
	else if (s < 120)
		(void)snprintf(out, 16, "%" PRIu64 "s", s);
	else if (s < 7200)
		(void)snprintf(out, 16, "%" PRIu64 "m", s / 60);
	else if (s < 172800)
		(void)snprintf(out, 16, "%" PRIu64 "h", s / 3600);
	else
		(void)snprintf(out, 16, "%" PRIu64 "d", s / 86400 % 1000000);
	return out;
}

/* Columns a UTF-8 text takes, taking each character for one. */
static size_t width_of(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += ((unsigned char)*text & 0xc0) != 0x80;
	return nr;
}

/* Cuts a text at `width` characters. */
static void cut(char *text, size_t width)
{
	size_t nr = 0;

	for (; *text; text++) {
		if (((unsigned char)*text & 0xc0) != 0x80 && nr++ == width) {
			*text = '\0';
			return;
		}
	}
}

static void append(char out[LINES_BYTES], const char *text)
{
	size_t used = strlen(out);

	(void)snprintf(out + used, LINES_BYTES - used, "%s", text);
}

static void append_right(char out[LINES_BYTES], const char *text, size_t width)
{
	size_t has = width_of(text);

	for (; has < width; has++)
		append(out, " ");
	append(out, text);
	append(out, " ");
}

static void append_left(char out[LINES_BYTES], const char *text, size_t width)
{
	size_t has = width_of(text);

	append(out, text);
	for (; has < width; has++)
		append(out, " ");
	append(out, " ");
}

static const char *trend_of(char out[MAX_CELL], const struct lines_row *row, size_t width, bool has_utf8)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
	const char *const *levels = has_utf8 ? blocks : letters;
	size_t first = row->nr_trend > width ? row->nr_trend - width : 0;
	uint64_t least = UINT64_MAX, most = 0;

	out[0] = '\0';
	for (size_t i = first; i < row->nr_trend; i++) {
		least = row->trend[i] < least ? row->trend[i] : least;
		most = row->trend[i] > most ? row->trend[i] : most;
	}
	for (size_t i = first; i < row->nr_trend; i++) {
		double part = most > least ? (double)(row->trend[i] - least) / (double)(most - least) : 0;

		(void)strcat(out, levels[(int)(part * 7.0 + 0.5)]);
	}
	return out;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* "func file.c:12", or the module where there is no name. */
static const char *where_of(char out[MAX_CELL], const struct lines_row *row)
{
	char function[256], file[200];

	format_text(function, sizeof(function),
		row->function ? row->function : row->module ? base_name(row->module) : "?");
	if (row->file && row->line)
		(void)snprintf(out, MAX_CELL, "%s %s:%u", function,
			format_text(file, sizeof(file), base_name(row->file)), row->line);
	else
		(void)snprintf(out, MAX_CELL, "%s", function);
	return out;
}

/* ---- the table ---- */

static size_t trend_width(const struct lines_style *style)
{
	return style->width >= 110 ? LINES_TREND : 6;
}

static size_t amount_width(const struct lines_style *style)
{
	return style->has_exact ? 14 : 6;
}

static void append_title(char out[LINES_BYTES], const struct lines_style *style, const char *name,
	const char *sort, size_t width)
{
	char title[24];
	bool is_chosen = style->sort && sort && !strcmp(style->sort, sort);

	(void)snprintf(title, sizeof(title), "%s%s", is_chosen ? ">" : "", name);
	append_right(out, title, width);
}

void lines_heading(char out[LINES_BYTES], const struct lines_style *style)
{
	size_t amount = amount_width(style);

	out[0] = '\0';
	append_title(out, style, "HELD", "held", amount);
	append_title(out, style, "BLKS", "blocks", amount);
	append_title(out, style, "%", NULL, 3);
	append_title(out, style, "TICK", "change", amount);
	append_title(out, style, "SINCE", "since", amount);
	append_title(out, style, "SLP/s", "slope", amount);
	append_left(out, "TREND", trend_width(style));
	append_title(out, style, "OLD", "oldest", 4);
	append_left(out, "VERDICT", 9);
	append(out, "WHERE");
	cut(out, style->width);
}

static const char *amount_cell(char out[16 + 16], const struct lines_style *style, double amount, bool is_signed)
{
	if (!style->has_exact || isnan(amount))
		return lines_amount(out, amount, is_signed);
	(void)snprintf(out, 32, is_signed ? "%+.0f" : "%.0f", amount);
	return out;
}

void lines_row(char out[LINES_BYTES], const struct lines_row *row, const struct lines_style *style)
{
	size_t amount = amount_width(style);
	char cell[32], text[MAX_CELL];

	out[0] = '\0';
	append_right(out, amount_cell(cell, style, (double)row->bytes, false), amount);
	append_right(out, amount_cell(cell, style, (double)row->blocks, false), amount);
	(void)snprintf(cell, sizeof(cell), "%.0f", row->share * 100);
	append_right(out, cell, 3);
	append_right(out, amount_cell(cell, style, row->change_bytes, true), amount);
	append_right(out, amount_cell(cell, style, (double)row->since_bytes, true), amount);
	append_right(out, amount_cell(cell, style, row->bytes_per_s, true), amount);
	append_left(out, trend_of(text, row, trend_width(style), style->has_utf8), trend_width(style));
	append_right(out, lines_age(cell, row->oldest_ms), 4);
	(void)snprintf(cell, sizeof(cell), "%.24s%s", row->verdict ? row->verdict : "",
		row->has_lost && row->verdict && strcmp(row->verdict, "lost") ? "!" : "");
	append_left(out, cell, 9);
	append(out, where_of(text, row));
	cut(out, style->width);
}

/* ---- the head ---- */

static void first_line(char out[LINES_BYTES], const struct lines_head *head)
{
	char age[FORMAT_BYTES], program[256];
	const char *name = base_name(head->program);

	(void)snprintf(out, LINES_BYTES, "leakwatch %d %s  up %s  every %.1f s  %s", head->pid,
		format_text(program, sizeof(program), name ? name : ""), format_ns(age, head->age_ns),
		(double)head->interval_ms / 1000, head->how);
}

static void second_line(char out[LINES_BYTES], const struct lines_head *head)
{
	char held[FORMAT_BYTES], peak[FORMAT_BYTES], rss[FORMAT_BYTES] = "-", rate[16];

	if (head->rss_bytes)
		format_size(rss, head->rss_bytes);
	(void)snprintf(out, LINES_BYTES,
		"held %s in %" PRIu64 "  %s/s  peak %s  rss %s  %" PRIu64 " sites",
		format_size(held, head->bytes), head->blocks, lines_amount(rate, head->bytes_per_s, true),
		format_size(peak, head->peak_bytes), rss, head->nr_sites);
}

static void third_line(char out[LINES_BYTES], const struct lines_head *head)
{
	char since[16], ago[16], allocs[16];
	size_t used;

	(void)snprintf(out, LINES_BYTES, "since %s ago %s  %s allocations/s",
		lines_age(ago, head->since_ns / 1000000), lines_amount(since, (double)head->since_bytes, true),
		lines_amount(allocs, head->allocs_per_s, false));
	used = strlen(out);
	if (head->nr_mismatches || head->nr_errors)
		used += (size_t)snprintf(out + used, LINES_BYTES - used,
			"  %" PRIu64 " mismatched  %" PRIu64 " wrong releases", head->nr_mismatches, head->nr_errors);
	if (head->nr_dropped)
		used += (size_t)snprintf(
			out + used, LINES_BYTES - used, "  %" PRIu64 " not recorded", head->nr_dropped);
	if (head->nr_lost)
		(void)snprintf(
			out + used, LINES_BYTES - used, "  %" PRIu64 " messages lost", head->nr_lost);
}

void lines_head(char out[LINES_BYTES], const struct lines_head *head, const struct lines_style *style,
	unsigned i)
{
	out[0] = '\0';
	if (i == 0)
		first_line(out, head);
	else if (i == 1)
		second_line(out, head);
	else
		third_line(out, head);
	cut(out, style->width);
}
