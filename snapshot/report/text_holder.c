/* SPDX-License-Identifier: MIT */
/* text_holder.c - a few lines for each example, from the root to the block; see text_holder.h. */
#include "snapshot/report/text_holder.h"

#include <ctype.h>
#include <inttypes.h>

#include "snapshot/report/format.h"
#include "snapshot/report/holder.h"

static void write_first(const struct text_writer *w, const struct lw_chain *chain)
{
	fputs("      begins", w->out);
	for (uint32_t i = 0; i < chain->nr_first; i++)
		fprintf(w->out, "%s%02x", i % 8 ? " " : "  ", chain->first[i]);
	fputs("  |", w->out);
	for (uint32_t i = 0; i < chain->nr_first; i++)
		fputc(chain->first[i] < 0x80 && isprint(chain->first[i]) ? chain->first[i] : '.', w->out);
	fputs("|\n", w->out);
}

/* The innermost frame of the program's own, in one piece. */
static void write_site(struct text_writer *w, uint32_t index)
{
	const struct model_site *site;
	const struct report_frame *frame;
	char name[512], file[512];

	if (index == MODEL_NO_SITE) {
		fputs("memory that is no block", w->out);
		return;
	}
	site = &w->report->model->sites[index];
	fprintf(w->out, "a block of %s", model_kind_name(site->kind));
	report_stack(w->report, site, &w->stack);
	frame = report_own_frame(&w->stack);
	if (!frame)
		return;
	if (frame->symbol->function)
		fprintf(w->out, " in %s", format_text(name, sizeof(name), frame->symbol->function));
	if (frame->symbol->file)
		fprintf(w->out, " %s:%u", format_text(file, sizeof(file), frame->symbol->file), frame->symbol->line);
	else if (site->hint_file)
		fprintf(w->out, " %s:%u", format_text(file, sizeof(file), site->hint_file), site->hint_line);
	else if (frame->module)
		fprintf(w->out, " (%s+0x%" PRIx64 ")", format_text(file, sizeof(file), frame->module->path),
			frame->offset);
}

static void write_owners(struct text_writer *w, const struct lw_chain *chain)
{
	uint32_t nr_kept, nr_left_out = holder_left_out(chain, &nr_kept);

	for (uint32_t i = 0; i < nr_kept; i++) {
		const struct lw_owner *owner = &chain->owners[i];

		if (i == LW_CHAIN_HEAD_OWNERS && nr_left_out)
			fprintf(w->out, "        -> %" PRIu32 " more\n", nr_left_out);
		fputs("        -> ", w->out);
		write_site(w, holder_site(w->report, owner));
		if (owner->offset != LW_NO_OWNER)
			fprintf(w->out, ", at +0x%" PRIx32, owner->offset);
		fputc('\n', w->out);
	}
}

void text_holders(struct text_writer *w, const struct report_site *judged)
{
	char bytes[FORMAT_BYTES], age[FORMAT_BYTES], text[HOLDER_TEXT_BYTES], name[512];
	const struct lw_chain *chain;
	const char *class;
	size_t from = 0;

	while (holder_is_shown(judged) && (chain = holder_next(w->report, judged, &from))) {
		fprintf(w->out, "    %sfor example%s 0x%012" PRIx64 ", %s, %s old", text_paint(w, TEXT_DIM),
			text_paint(w, TEXT_PLAIN), chain->address, format_size(bytes, chain->bytes),
			format_ns(age, holder_age_ms(w->report, judged, chain) * 1000000));
		class = holder_class(w->report, chain);
		if (class)
			fprintf(w->out, ", a %s", format_text(name, sizeof(name), class));
		fputc('\n', w->out);
		if (chain->nr_first)
			write_first(w, chain);
		if (!holder_is_held(w->report, chain))
			continue;
		fprintf(w->out, "      held by %s\n", holder_root(text, w->report, chain));
		write_owners(w, chain);
	}
}
