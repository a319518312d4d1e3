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
#include "snapshot/report/text_parts.h"

#include <inttypes.h>

#include "snapshot/alloc.h"
#include "snapshot/report/format.h"

enum { NAME_BYTES = 1024, LINE_BYTES = 4096, MAX_DROPS = 16 };

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

	if (report->options->sample)
		fprintf(w->out, "\nSampled: one allocation in about %s was recorded, so these figures are estimates\n",
			format_size(a, report->options->sample));
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

	if (!strcmp(report->state, "live") && model_is_scanned(report->model))
		fprintf(w->out,
			"SUMMARY: LeakWatch: %" PRIu64 " byte(s) lost in %" PRIu64
			" allocation(s), %" PRIu64 " byte(s) held in %" PRIu64 ", still running.\n",
			report->lost.bytes, report->lost.blocks, report->live.bytes, report->live.blocks);
	else if (!strcmp(report->state, "live"))
		fprintf(w->out,
			"SUMMARY: LeakWatch: %" PRIu64 " byte(s) held in %" PRIu64
			" allocation(s), still running.\n",
			report->live.bytes, report->live.blocks);
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
	text_leaks(&w, leaks);
	text_reachable(&w);
	if (report->options->runtime)
		text_runtime(&w);
	text_events(&w);
	write_marks(&w);
	write_suppressed(&w);
	text_scan(&w);
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
	text_event(&w, &report->model->events[index]);
	free(w.stack.frames);
}
