/* SPDX-License-Identifier: MIT */
/*
 * text_stack.c - one frame a line, in the form of the sanitizers' reports, which editors and
 * scripts parse: number, address, function, file and line, module and offset, build-id.
 *
 * What stands in every stack (the allocator, libc behind it, the start of the process) is left out
 * unless full_stacks asks for it. The path of the module is cut to its name where a line is known;
 * where none is, somebody will have to find the file.
 */
#include "snapshot/report/text_stack.h"

#include <inttypes.h>
#include <string.h>

#include "snapshot/report/format.h"

enum { NAME_BYTES = 1024 };

const char *text_paint(const struct text_writer *w, enum text_paint paint)
{
	static const char *const codes[TEXT_NR_PAINTS] = {
		"\033[0m", "\033[1m", "\033[2m", "\033[1;31m", "\033[1;32m", "\033[1;33m"};

	return w->has_color ? codes[paint] : "";
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void write_module(const struct text_writer *w, const struct report_frame *frame)
{
	const struct model_module *module = frame->module;
	char name[NAME_BYTES];

	if (!module) {
		fprintf(w->out, " %s(<unknown module>)%s", text_paint(w, TEXT_DIM),
			text_paint(w, TEXT_PLAIN));
		return;
	}
	/* whoever has no line needs the whole path, to find one by other means */
	format_text(
		name, sizeof(name), frame->symbol->file ? base_name(module->path) : module->path);
	fprintf(w->out, " %s(%s+0x%" PRIx64 ")", text_paint(w, TEXT_DIM), *name ? name : "?",
		frame->offset);
	if (module->build_id_bytes) {
		fputs(" (BuildId: ", w->out);
		for (unsigned i = 0; i < module->build_id_bytes; i++)
			fprintf(w->out, "%02x", module->build_id[i]);
		fputc(')', w->out);
	}
	fputs(text_paint(w, TEXT_PLAIN), w->out);
}

static void write_frame(const struct text_writer *w, size_t nr, const struct report_frame *frame)
{
	const struct symbol_frame *symbol = frame->symbol;
	char name[NAME_BYTES];

	fprintf(w->out, "    #%zu 0x%012" PRIx64, nr, frame->pc);
	if (symbol->function)
		fprintf(w->out, " in %s%s%s", text_paint(w, TEXT_BOLD),
			format_text(name, sizeof(name), symbol->function),
			text_paint(w, TEXT_PLAIN));
	if (symbol->file) {
		fprintf(w->out, " %s", format_text(name, sizeof(name), symbol->file));
		if (symbol->line)
			fprintf(w->out, ":%u", symbol->line);
		if (symbol->line && symbol->column)
			fprintf(w->out, ":%u", symbol->column);
	}
	write_module(w, frame);
	fputc('\n', w->out);
}

void text_stack(struct text_writer *w, const struct model_site *site)
{
	size_t first, end;

	report_stack(w->report, site, &w->stack);
	first = w->report->options->full_stacks ? 0 : w->stack.first_user;
	end = w->report->options->full_stacks ? w->stack.nr_frames : w->stack.end_user;
	for (size_t i = first; i < end; i++)
		write_frame(w, i - first, &w->stack.frames[i]);
	if (!w->stack.nr_frames)
		fputs("    (stack unknown)\n", w->out);
	else if (site->flags & LW_SITE_TRUNCATED)
		fprintf(w->out, "    %s(deeper frames were cut: depth=%u)%s\n",
			text_paint(w, TEXT_DIM), w->report->model->hello.depth,
			text_paint(w, TEXT_PLAIN));
}
