/* SPDX-License-Identifier: MIT */
/*
 * text.c - the report a person reads, often at night and in a hurry.
 *
 * The conclusion comes first, in one line; then the places, the worst first, each with its stack
 * from the first line of the person's own code; then wrong releases with both stacks; then one line
 * of totals, with what was not recorded and what LeakWatch cost; and last the SUMMARY line that
 * scripts look for. Frames have the form of the sanitizers' reports, which editors turn into links.
 * What only a tool needs of a line (module, build-id) stands at its end, dimmed on a terminal.
 *
 * Numbers are exact; the one that may not be, the peak of a program with threads, says "about".
 */
#include "snapshot/report/report.h"

#include <inttypes.h>

#include "snapshot/alloc.h"
#include "snapshot/model/libc_names.h"
#include "snapshot/report/format.h"
#include "snapshot/report/group.h"
#include "snapshot/report/text_stack.h"
#include "snapshot/report/trend_text.h"

enum { NAME_BYTES = 1024, LINE_BYTES = 4096, MAX_DROPS = 16, FEW = 5 };

static const char *program_name(const struct model *model)
{
	const char *exe = model_text(model, LW_TEXT_EXE), *slash = strrchr(exe, '/');

	return slash && slash[1] ? slash + 1 : *exe ? exe : "program";
}

/* ---- the conclusion ---- */

static void write_command(const struct text_writer *w)
{
	const struct model *model = w->report->model;
	const char *text = model_text(model, LW_TEXT_CMDLINE);
	size_t nr_bytes = model->texts[LW_TEXT_CMDLINE] ? model->text_bytes[LW_TEXT_CMDLINE] : 0;
	char line[LINE_BYTES], shown[160];
	size_t used = 0;

	for (size_t i = 0; i < nr_bytes && used + 1 < sizeof(line); i++)
		line[used++] = text[i] ? text[i] : ' ';
	while (used > 0 && line[used - 1] == ' ')
		used--;
	line[used] = '\0';
	if (used)
		fprintf(w->out, "  command: %s\n", format_text(shown, sizeof(shown), line));
}

static void write_end(const struct text_writer *w)
{
	const struct report *report = w->report;
	char time[FORMAT_BYTES];

	fprintf(w->out, "  ran %s, ", format_ns(time, report->model->hello.seconds_ns));
	if (!strcmp(report->state, "live"))
		fputs("still running", w->out);
	else if (strcmp(report->state, "killed"))
		fprintf(w->out, "ended by %s", report->state);
	else if (report->signal)
		fprintf(w->out, "killed by signal %d (SIG%s)", report->signal,
			sigabbrev_np(report->signal) ? sigabbrev_np(report->signal) : "?");
	else
		fputs("killed", w->out);
	if (report->model->hello.exit_status >= 0 && strcmp(report->state, "live"))
		fprintf(w->out, " with status %d", report->model->hello.exit_status);
	fputc('\n', w->out);
}

static void write_conclusion(const struct text_writer *w)
{
	const struct report *report = w->report;
	bool is_live = !strcmp(report->state, "live"), is_killed = !strcmp(report->state, "killed");
	uint64_t nr_wrong = report->nr_mismatches + report->nr_errors;
	char name[64], bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], sites[FORMAT_BYTES];
	char wrong[FORMAT_BYTES];
	const char *verb = is_live ? (model_is_scanned(report->model) ? "has leaked" : "holds")
			   : is_killed ? "held"
				       : "leaked";

	fprintf(w->out, "%sLeakWatch: %s (pid %d) ",
		text_paint(w, report->nr_leak_sites ? TEXT_RED : TEXT_GREEN),
		format_text(name, sizeof(name), program_name(report->model)),
		report->model->hello.pid);
	if (report->leaked.nr_sites)
		fprintf(w->out, "%s %s in %s, from %s", verb,
			format_bytes(bytes, report->leaked.bytes),
			format_count(blocks, report->leaked.blocks, "block"),
			format_count(sites, w->nr_leaks - w->nr_held, "site"));
	else
		fputs((is_live || is_killed) && !report->reachable.blocks ? "holds no memory" : "leaked nothing",
			w->out);
	if (w->nr_held)
		fprintf(w->out, "; %s grew and %s freed only by exit",
			format_count(sites, w->nr_held, "site"), w->nr_held > 1 ? "were" : "was");
	if (nr_wrong)
		fprintf(w->out, "; %s", format_count(wrong, nr_wrong, "wrong release"));
	fprintf(w->out, "%s\n", text_paint(w, TEXT_PLAIN));
	write_command(w);
	write_end(w);
	if (report->missing)
		fprintf(w->out, "  %snot complete: %s%s\n", text_paint(w, TEXT_YELLOW),
			report->missing, text_paint(w, TEXT_PLAIN));
	if (report->model->nr_bad)
		fprintf(w->out, "  %snot complete: %s left out%s\n", text_paint(w, TEXT_YELLOW),
			format_count(bytes, report->model->nr_bad, "damaged record"),
			text_paint(w, TEXT_PLAIN));
}

/* ---- sites ---- */

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
		trend_text(text, trend, (double)w->report->model->hello.seconds_ns / 1e9));
	if (w->report->left_bytes && *trend_outlook(text, &trend->growth, w->report->left_bytes))
		fprintf(w->out, "; at this rate %s", text);
	fprintf(w->out, "\n  %s|%s|%s\n", text_paint(w, TEXT_DIM),
		trend_sparkline(bars, trend->points, trend->nr_points, trend_is_utf8()),
		text_paint(w, TEXT_PLAIN));
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
	if (group->lost.blocks && judged->verdict != VERDICT_LOST && judged->verdict != VERDICT_INDIRECT)
		fprintf(w->out, ", nothing points to %s in %s any more", format_bytes(bytes, group->lost.bytes),
			format_count(blocks, group->lost.blocks, "block"));
	if (group->dragged.blocks)
		fprintf(w->out, ", drags along %s in %s", format_bytes(bytes, group->dragged.bytes),
			format_count(blocks, group->dragged.blocks, "block"));
	write_age(w, group);
	if (judged->reason)
		fprintf(w->out, "; kept by %s", judged->reason);
	fputc('\n', w->out);
	write_trend(w, judged);
	text_stack(w, judged->site);
}

/* The leaks that are listed; a line for those that are not. */
static void write_leaks(struct text_writer *w, const struct group *groups)
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

static void write_runtime(struct text_writer *w)
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

/* One line: what is still pointed to is seldom what is looked for. */
static void write_reachable_group(struct text_writer *w, const struct group *group)
{
	const struct model_site *site = group->first->site;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], name[NAME_BYTES], file[NAME_BYTES];

	report_stack(w->report, site, &w->stack);
	fprintf(w->out, "  %s in %s", format_bytes(bytes, group->live.bytes),
		format_count(blocks, group->live.blocks, "block"));
	if (w->stack.nr_frames) {
		const struct report_frame *frame = &w->stack.frames[w->stack.first_user];
		const struct symbol_frame *symbol = frame->symbol;
		const char *path = frame->module ? frame->module->path : "?", *slash = strrchr(path, '/');

		if (symbol->function)
			fprintf(w->out, " from %s", format_text(name, sizeof(name), symbol->function));
		if (symbol->file)
			fprintf(w->out, " %s:%u", format_text(file, sizeof(file), symbol->file), symbol->line);
		else
			fprintf(w->out, " (%s+0x%" PRIx64 ")",
				format_text(file, sizeof(file), slash ? slash + 1 : path), frame->offset);
	}
	fputc('\n', w->out);
}

static void write_reachable(struct text_writer *w)
{
	struct report *report = w->report;
	size_t end = report_end_of_reachable(report), nr_groups, nr_shown;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], sites[FORMAT_BYTES];
	struct group *groups;

	if (end == report->nr_leak_sites)
		return;
	groups = group_sites(report, report->nr_leak_sites, end, &nr_groups);
	nr_shown = report->options->show == LW_SHOW_ALL || nr_groups <= FEW ? nr_groups : FEW;
	fprintf(w->out, "\nStill reachable, so not counted as leaked: %s in %s, from %s\n",
		format_bytes(bytes, report->reachable.bytes),
		format_count(blocks, report->reachable.blocks, "block"),
		format_count(sites, nr_groups, "site"));
	for (size_t i = 0; i < nr_shown; i++)
		write_reachable_group(w, &groups[i]);
	if (nr_shown < nr_groups)
		fprintf(w->out, "  and %s (show=all)\n",
			format_count(sites, nr_groups - nr_shown, "more site"));
	/* what grew and stopped is worth its reason */
	for (size_t i = 0; i < nr_groups; i++)
		if (groups[i].first->verdict == VERDICT_BOUNDED)
			write_group(w, &groups[i]);
	free(groups);
}

/* What the search for pointers found, in words other tools have taught; or why there was none. */
static void write_scan(const struct text_writer *w)
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
	fprintf(w->out, "; still reachable: %s in %s", format_bytes(bytes, report->reachable.bytes),
		format_count(blocks, report->reachable.blocks, "block"));
	fprintf(w->out, " (searched in %s", format_ns(time, scan->took_ns));
	if (!(scan->flags & LW_SCAN_AT_EXIT))
		fprintf(w->out, ", %s after the start", format_ns(time, scan->began_ns));
	if (scan->flags & LW_SCAN_APPROXIMATE)
		fputs(", about: where other threads stood was not known", w->out);
	fputs(")\n", w->out);
}

/* ---- wrong releases ---- */

static const char *kind_of(const struct model *model, uint32_t index, const char *unknown)
{
	return index == MODEL_NO_SITE || !model->sites[index].kind
		       ? unknown
		       : model_kind_name(model->sites[index].kind);
}

static void write_mismatch(const struct text_writer *w, const struct model_event *event,
	const char *alloc_kind, const char *free_kind)
{
	char bytes[FORMAT_BYTES];
	bool is_before = !strcmp(free_kind, "delete[]"); /* it looked for a count in front */

	fprintf(w->out, "Mismatch: a block of %s from %s was %sreleased by %s",
		format_bytes(bytes, event->bytes), alloc_kind,
		event->flags & LW_EVENT_UNSURE ? "possibly " : "", free_kind);
	if (event->flags & LW_EVENT_UNSURE)
		fputs(" (the program has operators of its own, which names might show to be a pair)",
			w->out);
	if (event->flags & LW_EVENT_COOKIE && is_before)
		fprintf(w->out,
			" (given an address %" PRIu64
			" bytes before it, where new[] would have put a count)",
			event->expected);
	else if (event->flags & LW_EVENT_COOKIE)
		fprintf(w->out,
			" (given an address %" PRIu64
			" bytes into it, behind the count that new[] keeps there)",
			event->expected);
}

static void write_alignment(const struct text_writer *w, const struct model_event *event,
	const char *free_kind)
{
	uint32_t align_log2 = event->flags >> LW_EVENT_ALIGN_AT & 63;
	char bytes[FORMAT_BYTES];

	fprintf(w->out, "Alignment mismatch: %s was told ", free_kind);
	if (event->expected)
		fprintf(w->out, "an alignment of %" PRIu64, event->expected);
	else
		fputs("no alignment", w->out);
	fprintf(w->out, " for a block of %s allocated with ", format_bytes(bytes, event->bytes));
	if (align_log2)
		fprintf(w->out, "one of %" PRIu64, UINT64_C(1) << align_log2);
	else
		fputs("none", w->out);
}

static void write_double_free(const struct text_writer *w, const struct model_event *event,
	const char *free_kind)
{
	char bytes[FORMAT_BYTES];

	if (event->bytes)
		fprintf(w->out, "Double free: a block of %s was released again, by %s",
			format_bytes(bytes, event->bytes), free_kind);
	else
		fprintf(w->out, "Double free: a block was released again, by %s", free_kind);
}

static void write_event_heading(const struct text_writer *w, const struct model_event *event)
{
	const struct model *model = w->report->model;
	const char *alloc_kind = kind_of(model, event->alloc_site, "another family");
	const char *free_kind = kind_of(model, event->free_site, "a release");
	char bytes[FORMAT_BYTES], size[FORMAT_BYTES];

	fprintf(w->out, "\n%s", text_paint(w, TEXT_YELLOW));
	switch (event->what) {
	case LW_EVENT_MISMATCH:
		write_mismatch(w, event, alloc_kind, free_kind);
		break;
	case LW_EVENT_DOUBLE_FREE:
		write_double_free(w, event, free_kind);
		break;
	case LW_EVENT_UNKNOWN_FREE:
		fprintf(w->out, "Unknown free: %s was given an address that is no block",
			free_kind);
		break;
	case LW_EVENT_SIZE_MISMATCH:
		fprintf(w->out, "Size mismatch: %s was told %s for a block of %s", free_kind,
			format_bytes(size, event->expected), format_bytes(bytes, event->bytes));
		break;
	default:
		write_alignment(w, event, free_kind);
	}
	if (event->count > 1)
		fprintf(w->out, ", %" PRIu64 " times", event->count);
	fprintf(w->out, "%s\n", text_paint(w, TEXT_PLAIN));
}

static void write_event_stack(struct text_writer *w, const char *what, uint32_t index)
{
	const struct model_site *site;
	char name[NAME_BYTES];

	if (index == MODEL_NO_SITE)
		return;
	site = &w->report->model->sites[index];
	if (!site->nr_frames && !site->hint_file)
		return;
	fprintf(w->out, "  %s", what);
	if (site->hint_file)
		fprintf(w->out, " at %s:%u", format_text(name, sizeof(name), site->hint_file),
			site->hint_line);
	fputs(":\n", w->out);
	text_stack(w, site);
}

static void write_event(struct text_writer *w, const struct model_event *event)
{
	write_event_heading(w, event);
	write_event_stack(w, "released", event->free_site);
	write_event_stack(w, "allocated", event->alloc_site);
}

static void write_events(struct text_writer *w)
{
	const struct model *model = w->report->model;

	for (size_t i = 0; i < model->nr_events; i++)
		if (!model->events[i].is_rejected)
			write_event(w, &model->events[i]);
}

/* ---- units of work ---- */

static double per_mark(uint64_t first, uint64_t last, uint64_t count)
{
	return count > 1 ? (double)(int64_t)(last - first) / (double)(count - 1) : 0;
}

static void write_marks(const struct text_writer *w)
{
	const struct model *model = w->report->model;
	char name[NAME_BYTES], held[FORMAT_BYTES], blocks[FORMAT_BYTES], times[FORMAT_BYTES];

	if (model->nr_marks)
		fputs("\nUnits of work:\n", w->out);
	for (size_t i = 0; i < model->nr_marks; i++) {
		const struct model_mark *mark = &model->marks[i];

		fprintf(w->out, "  %s: %s, held %s in %s at the last",
			format_text(name, sizeof(name), mark->name),
			format_count(times, mark->count, "mark"),
			format_bytes(held, mark->last.bytes),
			format_count(blocks, mark->last.blocks, "block"));
		if (mark->count > 1)
			fprintf(w->out, "; %+.1f bytes and %+.2f blocks from one to the next",
				per_mark(mark->first.bytes, mark->last.bytes, mark->count),
				per_mark(mark->first.blocks, mark->last.blocks, mark->count));
		fputc('\n', w->out);
	}
}

/* ---- the end ---- */

static void write_suppressed(const struct text_writer *w)
{
	const struct suppress *suppress = w->report->suppress;

	if (!w->report->suppressed.nr_sites)
		return;
	fputs("\nSuppressions used:\n  count      bytes template\n", w->out);
	for (size_t i = 0; i < suppress->nr_rules; i++) {
		const struct suppress_rule *rule = &suppress->rules[i];
		char shown[NAME_BYTES];

		if (rule->nr_sites)
			fprintf(w->out, "%7" PRIu64 " %10" PRIu64 " %s\n", rule->nr_blocks,
				rule->nr_bytes, format_text(shown, sizeof(shown), rule->pattern));
	}
}

static void write_dropped(const struct text_writer *w)
{
	const uint64_t *dropped = w->report->model->totals.dropped;

	if (!w->report->nr_dropped) {
		fputs("; nothing dropped", w->out);
		return;
	}
	fputs("; dropped: ", w->out);
	for (unsigned i = 0, nr = 0; i < MAX_DROPS; i++)
		if (dropped[i])
			fprintf(w->out, "%s%" PRIu64 " %s", nr++ ? ", " : "", dropped[i],
				model_drop_reason(i));
}

static void write_totals(const struct text_writer *w)
{
	const struct report *report = w->report;
	const struct model *model = report->model;
	bool is_about = model->hello.flags & LW_REGION_PEAK_SAMPLED;
	char a[FORMAT_BYTES], b[FORMAT_BYTES], c[FORMAT_BYTES];

	fprintf(w->out, "\nTotals: live %s in %s", format_bytes(a, report->live.bytes),
		format_count(b, report->live.blocks, "block"));
	if (report->runtime.nr_sites)
		fprintf(w->out, " (%s of the C runtime's own)",
			format_size(a, report->runtime.bytes));
	fprintf(w->out, ", peak %s%s", is_about ? "about " : "",
		format_bytes(a, report->peak_bytes));
	fprintf(w->out, ", %s, %s, %s", format_count(a, report->total_allocs, "allocation"),
		format_count(b, report->total_frees, "free"),
		format_count(c, report->nr_alloc_sites, "site"));
	if (model->totals.inherited_blocks)
		fprintf(w->out, ", %s of the parent",
			format_count(a, model->totals.inherited_blocks, "inherited block"));
	write_dropped(w);
	fputs("; LeakWatch took ", w->out);
	if (model->totals.own_bytes) /* only the end of the target itself measures it */
		fprintf(w->out, "%s, ", format_size(a, model->totals.own_bytes));
	fputs(format_count(b, model->totals.nr_captures, "stack walk"), w->out);
	if (model->totals.nr_slow_captures)
		fprintf(w->out, " (%" PRIu64 " slow)", model->totals.nr_slow_captures);
	fprintf(w->out, ", %s for this report\n",
		format_ns(c, model->totals.report_ns + report_now_ns() - report->began_ns));
}

static void write_summary(const struct text_writer *w)
{
	const struct report *report = w->report;

	if (!strcmp(report->state, "live"))
		fprintf(w->out,
			"SUMMARY: LeakWatch: %" PRIu64 " byte(s) held in %" PRIu64
			" allocation(s), still running.\n",
			report->leaked.bytes, report->leaked.blocks);
	else
		fprintf(w->out,
			"SUMMARY: LeakWatch: %" PRIu64 " byte(s) leaked in %" PRIu64
			" allocation(s).\n",
			report->leaked.bytes, report->leaked.blocks);
}

void report_text(struct report *report, FILE *out, bool has_color)
{
	struct text_writer w = {.report = report, .out = out, .has_color = has_color};
	struct group *leaks = group_sites(report, 0, report->nr_leak_sites, &w.nr_leaks);

	for (size_t i = 0; i < w.nr_leaks; i++)
		w.nr_held += leaks[i].first->verdict == VERDICT_HELD;
	write_conclusion(&w);
	write_leaks(&w, leaks);
	write_reachable(&w);
	if (report->options->runtime)
		write_runtime(&w);
	write_events(&w);
	write_marks(&w);
	write_suppressed(&w);
	write_scan(&w);
	write_totals(&w);
	write_summary(&w);
	free(leaks);
	free(w.stack.frames);
}

void report_text_event(struct report *report, size_t index, FILE *out, bool has_color)
{
	struct text_writer w = {.report = report, .out = out, .has_color = has_color};
	char name[64];

	fprintf(out, "%sLeakWatch: %s (pid %d): wrong release%s\n", text_paint(&w, TEXT_RED),
		format_text(name, sizeof(name), program_name(report->model)),
		report->model->hello.pid, text_paint(&w, TEXT_PLAIN));
	write_event(&w, &report->model->events[index]);
	free(w.stack.frames);
}
