/* SPDX-License-Identifier: MIT */
/* text_sites.c - the places of the text report, the worst first, each with its stack; and what a scan saw. */
#include "snapshot/report/text_parts.h"

#include <inttypes.h>

#include "snapshot/alloc.h"
#include "snapshot/model/libc_names.h"
#include "snapshot/report/format.h"
#include "snapshot/report/trend_text.h"
#include "snapshot/report/text_holder.h"

enum { NAME_BYTES = 1024, LINE_BYTES = 4096, FEW = 5 };

static void write_age(const struct text_writer *w, const struct group *group)
{
	bool is_known = group->oldest_ms != UINT32_MAX;
	char time[FORMAT_BYTES];

	fprintf(w->out, ", %s %s ago", is_known ? "oldest" : "first seen",
		format_ns(time,
			report_age_ms(w->report, is_known ? group->oldest_ms : group->first_ms) *
				1000000));
}

/* "malloc, realloc through regcomp at a.c:3" */
static void write_origin(const struct text_writer *w, const struct group *group)
{
	const struct report_site *judged = group->first;
	char name[NAME_BYTES], plain[64];
	const char *comma = "";

	fputs("  ", w->out);
	for (unsigned kind = 0; kind < LW_NR_KINDS; kind++) {
		if (!(group->kinds & 1u << kind))
			continue;
		fprintf(w->out, "%s%s", comma, model_kind_name(kind));
		comma = ", ";
	}
	if (judged->through) {
		libc_names_plain(judged->through, plain, sizeof(plain));
		fprintf(w->out, " through %s", format_text(name, sizeof(name), plain));
	}
	if (judged->site->hint_file)
		fprintf(w->out, " at %s:%u",
			format_text(name, sizeof(name), judged->site->hint_file),
			judged->site->hint_line);
}

/* Why it grows, what that means for the machine, and how it looks. */
static void write_trend(const struct text_writer *w, const struct report_site *judged)
{
	const struct trend *trend = judged->trend;
	char text[TREND_TEXT_BYTES], bars[SPARKLINE_BYTES];

	if (!trend || judged->reason || trend->growth.kind == GROWTH_STEADY)
		return;
	fprintf(w->out, "  %s: %s", verdict_name(judged->verdict),
		trend_text(text, trend));
	if (w->report->left_bytes && *trend_outlook(text, &trend->growth, w->report->left_bytes))
		fprintf(w->out, "; at this rate %s", text);
	fprintf(w->out, "\n  %s|%s|%s\n", text_paint(w, TEXT_DIM),
		trend_sparkline(bars, trend->points, trend->nr_points, trend_is_utf8()),
		text_paint(w, TEXT_PLAIN));
}

/* Of a site with another verdict: how much of it is lost all the same. */
static void write_pointless(struct text_writer *w, const struct group *group)
{
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES];

	if (group->lost.blocks)
		fprintf(w->out, ", nothing points to %s in %s any more", format_bytes(bytes, group->lost.bytes),
			format_count(blocks, group->lost.blocks, "block"));
	else if (group->indirect.blocks)
		fprintf(w->out, ", only lost memory points to %s in %s", format_bytes(bytes, group->indirect.bytes),
			format_count(blocks, group->indirect.blocks, "block"));
}

static void write_group(struct text_writer *w, const struct group *group)
{
	const struct report_site *judged = group->first;
	double percent = w->report->leaked.bytes ? 100.0 * (double)group->live.bytes /
							   (double)w->report->leaked.bytes
						 : 0;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES];

	fprintf(w->out, "\n%s%s: %s in %s%s",
		text_paint(w, judged->reason ? TEXT_DIM : TEXT_YELLOW),
		verdict_heading(judged->verdict), format_bytes(bytes, group->live.bytes),
		format_count(blocks, group->live.blocks, "block"), text_paint(w, TEXT_PLAIN));
	if (!judged->reason && judged->verdict != VERDICT_HELD && w->nr_leaks > 1 && percent >= 1)
		fprintf(w->out, ", %.0f%% of all", percent);
	fputc('\n', w->out);
	write_origin(w, group);
	if (group->alloc_blocks > group->live.blocks)
		fprintf(w->out, ", of %s (%s) ever allocated here",
			format_count(blocks, group->alloc_blocks, "block"),
			format_size(bytes, group->alloc_bytes));
	else if (group->live.blocks > 1 && judged->verdict != VERDICT_HELD)
		fputs(", none was ever freed", w->out);
	if (judged->verdict != VERDICT_LOST && judged->verdict != VERDICT_INDIRECT)
		write_pointless(w, group);
	if (group->dragged.blocks)
		fprintf(w->out, ", drags along %s in %s", format_bytes(bytes, group->dragged.bytes),
			format_count(blocks, group->dragged.blocks, "block"));
	write_age(w, group);
	if (judged->reason)
		fprintf(w->out, "; kept by %s", judged->reason);
	fputc('\n', w->out);
	write_trend(w, judged);
	text_stack(w, judged->site);
	text_holders(w, judged);
}

/* The leaks that are listed; a line for those that are not. */
void text_leaks(struct text_writer *w, const struct group *groups)
{
	const struct lw_options *options = w->report->options;
	struct report_sum hidden = {0};
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], sites[FORMAT_BYTES];
	size_t nr_listed = 0;

	for (size_t i = 0; i < w->nr_leaks; i++) {
		const struct report_sum *live = &groups[i].live;

		if (live->bytes >= options->min_bytes &&
			(!options->top || nr_listed < options->top)) {
			write_group(w, &groups[i]);
			nr_listed++;
			continue;
		}
		hidden.bytes += live->bytes;
		hidden.blocks += live->blocks;
		hidden.nr_sites++;
	}
	if (hidden.nr_sites)
		fprintf(w->out, "\nNot listed: %s with %s in %s (top=%u, min_bytes=%" PRIu64 ")\n",
			format_count(sites, hidden.nr_sites, "more site"),
			format_bytes(bytes, hidden.bytes),
			format_count(blocks, hidden.blocks, "block"), options->top,
			options->min_bytes);
}

void text_runtime(struct text_writer *w)
{
	struct report *report = w->report;
	size_t first = report_end_of_reachable(report), end = first, nr_groups;
	struct group *groups;

	while (end < report->nr_sites && !report->sites[end].rule)
		end++;
	groups = group_sites(report, first, end, &nr_groups);
	for (size_t i = 0; i < nr_groups; i++)
		write_group(w, &groups[i]);
	free(groups);
}

/* "file.c:3", or the module; the macro's place is the program's own word, with debug information or without. */
static const char *place_of(char out[NAME_BYTES], const struct model_site *site, const struct report_frame *frame)
{
	const char *path = frame && frame->module ? frame->module->path : "?", *slash = strrchr(path, '/');
	const struct symbol_frame *symbol = frame ? frame->symbol : NULL;
	char file[NAME_BYTES - 64];

	out[0] = '\0';
	if (symbol && symbol->file)
		(void)snprintf(out, NAME_BYTES, " %s:%u", format_text(file, sizeof(file), symbol->file), symbol->line);
	else if (site->hint_file)
		(void)snprintf(out, NAME_BYTES, " at %s:%u", format_text(file, sizeof(file), site->hint_file),
			site->hint_line);
	else if (frame)
		(void)snprintf(out, NAME_BYTES, " (%s+0x%" PRIx64 ")",
			format_text(file, sizeof(file), slash ? slash + 1 : path), frame->offset);
	return out;
}

/* One line: what is still pointed to is seldom what is looked for. */
static void write_reachable_group(struct text_writer *w, const struct group *group)
{
	const struct model_site *site = group->first->site;
	const struct report_frame *frame;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], name[NAME_BYTES];

	report_stack(w->report, site, &w->stack);
	fprintf(w->out, "  %s in %s", format_bytes(bytes, group->live.bytes),
		format_count(blocks, group->live.blocks, "block"));
	frame = report_own_frame(&w->stack);
	if (frame && frame->symbol->function)
		fprintf(w->out, " from %s", format_text(name, sizeof(name), frame->symbol->function));
	fprintf(w->out, "%s\n", place_of(name, site, frame));
}

/* Groups come by size, so what is too small to be listed is at their end. */
static size_t count_large(const struct report *report, const struct group *groups, size_t nr_groups)
{
	while (nr_groups && groups[nr_groups - 1].live.bytes < report->options->min_bytes)
		nr_groups--;
	return nr_groups;
}

static struct report_sum sum_up(const struct group *groups, size_t nr_groups)
{
	struct report_sum sum = {.nr_sites = nr_groups};

	for (size_t i = 0; i < nr_groups; i++) {
		sum.bytes += groups[i].live.bytes;
		sum.blocks += groups[i].live.blocks;
	}
	return sum;
}

/* One line, "  and 3 more sites with 12 bytes in 3 blocks" with what it depends on behind. */
static void write_rest(const struct text_writer *w, const struct report_sum *rest)
{
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], sites[FORMAT_BYTES];

	fprintf(w->out, "%s with %s in %s", format_count(sites, rest->nr_sites, "more site"),
		format_bytes(bytes, rest->bytes), format_count(blocks, rest->blocks, "block"));
}

static void write_pointed(struct text_writer *w, const struct group *groups, size_t nr_groups)
{
	size_t nr_large = count_large(w->report, groups, nr_groups), nr_shown = nr_large;
	struct report_sum all = sum_up(groups, nr_groups), small = sum_up(groups + nr_large, nr_groups - nr_large);
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], sites[FORMAT_BYTES];

	if (w->report->options->show != LW_SHOW_ALL && nr_shown > FEW)
		nr_shown = FEW;
	fprintf(w->out, "\nStill reachable, so not counted as leaked: %s in %s, from %s\n",
		format_bytes(bytes, all.bytes), format_count(blocks, all.blocks, "block"),
		format_count(sites, nr_groups, "site"));
	for (size_t i = 0; i < nr_shown; i++)
		write_reachable_group(w, &groups[i]);
	if (nr_shown < nr_large)
		fprintf(w->out, "  and %s (show=all)\n", format_count(sites, nr_large - nr_shown, "more site"));
	if (!small.nr_sites)
		return;
	fputs("  and ", w->out);
	write_rest(w, &small);
	fprintf(w->out, " (min_bytes=%" PRIu64 ")\n", w->report->options->min_bytes);
}

/* What grew and stopped is worth its reason. */
static void write_bounded(struct text_writer *w, const struct group *groups, size_t nr_groups)
{
	size_t nr_large = count_large(w->report, groups, nr_groups);
	struct report_sum small = sum_up(groups + nr_large, nr_groups - nr_large);

	for (size_t i = 0; i < nr_large; i++)
		write_group(w, &groups[i]);
	if (!small.nr_sites)
		return;
	fputs("\nBounded, not listed: ", w->out);
	write_rest(w, &small);
	fprintf(w->out, " (min_bytes=%" PRIu64 ")\n", w->report->options->min_bytes);
}

/* Groups come by verdict: those that were never anything else, then those that grew for a while. */
void text_reachable(struct text_writer *w)
{
	struct report *report = w->report;
	size_t end = report_end_of_reachable(report), nr_groups, nr_pointed = 0;
	struct group *groups;

	if (end == report->nr_leak_sites)
		return;
	groups = group_sites(report, report->nr_leak_sites, end, &nr_groups);
	while (nr_pointed < nr_groups && groups[nr_pointed].first->verdict != VERDICT_BOUNDED)
		nr_pointed++;
	if (nr_pointed)
		write_pointed(w, groups, nr_pointed);
	write_bounded(w, groups + nr_pointed, nr_groups - nr_pointed);
	free(groups);
}

/* What the search for pointers found, in words other tools have taught; or why there was none. */
void text_scan(const struct text_writer *w)
{
	const struct report *report = w->report;
	const struct lw_wire_scan *scan = &report->model->scan;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], time[FORMAT_BYTES];

	if (!report->model->has_scan)
		return;
	if (scan->state != LW_SCAN_DONE) {
		fprintf(w->out, "\nNot known what is lost: the search for pointers %s: %s\n",
			scan->state == LW_SCAN_REFUSED ? "was not begun" : "was not finished",
			scan->state == LW_SCAN_RUNNING ? "it is still running"
						       : model_scan_reason(scan->why));
		return;
	}
	fprintf(w->out, "\nLost: %s in %s", format_bytes(bytes, report->lost.bytes),
		format_count(blocks, report->lost.blocks, "block"));
	fprintf(w->out, "; lost indirectly: %s in %s", format_bytes(bytes, report->indirect.bytes),
		format_count(blocks, report->indirect.blocks, "block"));
	fprintf(w->out, "; %s: %s in %s", report_is_scan_fresh(report) ? "still reachable" : "other",
		format_bytes(bytes, report->pointed.bytes), format_count(blocks, report->pointed.blocks, "block"));
	fprintf(w->out, " (searched in %s", format_ns(time, scan->took_ns));
	if (!(scan->flags & LW_SCAN_AT_EXIT))
		fprintf(w->out, ", %s ago",
			format_ns(time, report_age_ms(report, (uint32_t)(scan->began_ns / 1000000)) * 1000000));
	if (scan->flags & LW_SCAN_APPROXIMATE)
		fputs(", about: where other threads stood was not known, so of sites with few lost "
		      "blocks none is accused",
			w->out);
	fputs(")\n", w->out);
}
