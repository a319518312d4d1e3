/* SPDX-License-Identifier: MIT */
/* text_events.c - wrong releases in the text report, with both stacks. */
#include "snapshot/report/text_parts.h"

#include <inttypes.h>
#include <string.h>

#include "snapshot/report/format.h"

enum { NAME_BYTES = 1024 };

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

void text_event(struct text_writer *w, const struct model_event *event)
{
	write_event_heading(w, event);
	write_event_stack(w, "released", event->free_site);
	write_event_stack(w, "allocated", event->alloc_site);
}

void text_events(struct text_writer *w)
{
	const struct model *model = w->report->model;

	for (size_t i = 0; i < model->nr_events; i++)
		if (!model->events[i].is_rejected)
			text_event(w, &model->events[i]);
}
