/* SPDX-License-Identifier: MIT */
/*
 * screen.c - draws the screen with ncurses; see screen.h.
 *
 * Every line is drawn whole and the rest of it cleared, and ncurses sends what differs, so that a
 * screen over ssh costs what changed. Colour means something: red leaks, yellow is to be looked at.
 */
#include "snapshot/view/screen.h"

#include <inttypes.h>
#include <ncurses.h>
#include <string.h>

#include "snapshot/report/format.h"
#include "snapshot/report/holder.h"

enum { COLOR_BAD = 1, COLOR_DOUBT, FIRST_ROW = LINES_HEADS + 1, LEAST_WIDTH = 40 };

static const char *const help[] = {
	"up down, j k    choose a site            page up, page down, home, end",
	"enter           its whole stack, and back",
	"s S             sort by the next, the previous column (marked >)",
	"/               show only sites with this text anywhere in their stacks",
	"p space         pause; what happens meanwhile is caught up with",
	"r               SINCE counts from now",
	"b               exact numbers",
	"+ -             more, fewer ticks a second",
	"l               look for lost memory: what nothing points to any more",
	"w               save what is held now in a file, for leakwatch-snapshot FILE",
	"q               quit",
	"",
	"HELD  bytes     BLKS  blocks     %  of all that is held",
	"TICK  change by the last tick    SINCE  since the baseline    SLP/s  bytes a second",
	"TREND  bytes over the whole watch    OLD  age of the oldest block",
	"VERDICT  with ! after it: some of it is lost, by the last search (l)",
	"K, M, G are 1024, 1024 K, 1024 M.",
};

void screen_start(struct screen *screen)
{
	if (!screen->has_color || !has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(COLOR_BAD, COLOR_RED, -1);
	(void)init_pair(COLOR_DOUBT, COLOR_YELLOW, -1);
}

size_t screen_rows(void)
{
	return getmaxy(stdscr) > FIRST_ROW + 1 ? (size_t)(getmaxy(stdscr) - FIRST_ROW - 1) : 1;
}

static struct lines_style style_of(const struct screen *screen)
{
	unsigned width = (unsigned)getmaxx(stdscr);

	return (struct lines_style){.width = width < LEAST_WIDTH ? LEAST_WIDTH : width,
		.has_utf8 = screen->has_utf8,
		.has_exact = screen->has_exact,
		.sort = watch_sort_name(screen->sort)};
}

/* One line of the screen; nothing past its end or below the last. */
static void put_line(int y, const char *text, attr_t attributes)
{
	if (y < 0 || y >= getmaxy(stdscr))
		return;
	(void)attrset((int)attributes);
	(void)move(y, 0);
	(void)clrtoeol();
	(void)addnstr(text, -1);
	if (getcury(stdscr) != y && y + 1 < getmaxy(stdscr)) { /* it filled the line, or more */
		(void)move(y + 1, 0);
		(void)clrtoeol();
	}
	(void)attrset(A_NORMAL);
}

static attr_t attributes_of(const struct screen *screen, const struct lines_row *row)
{
	if (!screen->has_color || !row->verdict)
		return A_NORMAL;
	if (!strcmp(row->verdict, "lost") || !strcmp(row->verdict, "growing"))
		return (attr_t)COLOR_PAIR(COLOR_BAD);
	if (!strcmp(row->verdict, "indirect") || !strcmp(row->verdict, "held"))
		return (attr_t)COLOR_PAIR(COLOR_DOUBT);
	return A_NORMAL;
}

/* A site a person chose stays chosen wherever it goes; without it the cursor stays where it is. */
static void find_cursor(struct screen *screen)
{
	size_t rows = screen_rows();

	for (size_t i = 0; i < screen->nr_order && screen->is_held; i++) {
		if (screen->order[i] == screen->chosen) {
			screen->cursor = i;
			break;
		}
	}
	if (screen->cursor >= screen->nr_order)
		screen->cursor = screen->nr_order ? screen->nr_order - 1 : 0;
	if (screen->nr_order)
		screen->chosen = screen->order[screen->cursor];
	if (screen->cursor < screen->top)
		screen->top = screen->cursor;
	if (screen->cursor >= screen->top + rows)
		screen->top = screen->cursor - rows + 1;
	if (screen->top + rows > screen->nr_order)
		screen->top = screen->nr_order > rows ? screen->nr_order - rows : 0;
}

static void draw_head(struct screen *screen)
{
	struct lines_style style = style_of(screen);
	char line[LINES_BYTES], how[160];
	struct lines_head head;

	view_head(screen->view, &head, how);
	for (unsigned i = 0; i < LINES_HEADS; i++) {
		bool is_odd = i == 0 && strcmp(how, "[live]") && screen->has_color;

		lines_head(line, &head, &style, i);
		put_line((int)i, line, is_odd ? (attr_t)COLOR_PAIR(COLOR_DOUBT) : A_NORMAL);
	}
}

static void draw_list(struct screen *screen)
{
	struct lines_style style = style_of(screen);
	size_t rows = screen_rows();
	char line[LINES_BYTES];
	struct lines_row row;

	lines_heading(line, &style);
	put_line(LINES_HEADS, line, A_REVERSE);
	for (size_t i = 0; i < rows; i++) {
		size_t at = screen->top + i;

		if (at >= screen->nr_order) {
			put_line((int)(FIRST_ROW + i), i || screen->nr_order ? "" : "nothing is held", A_NORMAL);
			continue;
		}
		view_row(screen->view, screen->order[at], &row);
		lines_row(line, &row, &style);
		put_line((int)(FIRST_ROW + i), line,
			attributes_of(screen, &row) | (at == screen->cursor ? A_BOLD | A_UNDERLINE : 0));
	}
}

static void format_frame(char line[LINES_BYTES], size_t i, const struct report_frame *frame)
{
	char function[512], file[512];

	format_text(function, sizeof(function), frame->symbol->function ? frame->symbol->function : "?");
	if (frame->symbol->file)
		(void)snprintf(line, LINES_BYTES, "#%zu %s %s:%u", i, function,
			format_text(file, sizeof(file), frame->symbol->file), frame->symbol->line);
	else
		(void)snprintf(line, LINES_BYTES, "#%zu %s (%s+0x%" PRIx64 ")", i, function,
			frame->module ? format_text(file, sizeof(file), frame->module->path) : "?",
			frame->offset);
	if (getmaxx(stdscr) < LINES_BYTES)
		line[getmaxx(stdscr)] = '\0';
}

/* What the last search found of this site; false: it found nothing, or there was none. */
static bool lost_of(const struct watch *watch, uint32_t site, char line[LINES_BYTES])
{
	const struct lw_scan_site *found = &watch->decode.model->sites[site].scan;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES], indirect[FORMAT_BYTES];

	if (!model_is_scanned(watch->decode.model) || !(found->lost_blocks + found->indirect_blocks))
		return false;
	(void)snprintf(line, LINES_BYTES, "nothing points to %s in %s any more; indirectly so %s",
		format_size(bytes, found->lost_bytes), format_count(blocks, found->lost_blocks, "block"),
		format_size(indirect, found->indirect_bytes));
	return true;
}

/* An example of who holds blocks of this site, as far as the last search knows. */
static bool holder_of(struct watch *watch, uint32_t site, char line[LINES_BYTES])
{
	const struct model *model = watch->decode.model;
	char text[HOLDER_TEXT_BYTES], owners[FORMAT_BYTES];

	for (size_t i = 0; i < model->nr_chains; i++) {
		const struct lw_chain *chain = &model->chains[i];

		if (model_find_site(model, chain->site) != site ||
			!holder_is_held(&watch->report, chain))
			continue;
		(void)snprintf(line, LINES_BYTES, "held by %.400s, through %s",
			holder_root(text, &watch->report, chain), format_count(owners, chain->nr_owners, "block"));
		return true;
	}
	return false;
}

static void draw_site(struct screen *screen)
{
	struct watch *watch = &screen->view->watch;
	const struct model_site *site = &watch->decode.model->sites[screen->chosen];
	struct lines_style style = style_of(screen);
	size_t rows = screen_rows() - 1, first = FIRST_ROW + 1;
	char line[LINES_BYTES];
	struct lines_row row;

	lines_heading(line, &style);
	put_line(LINES_HEADS, line, A_REVERSE);
	view_row(screen->view, screen->chosen, &row);
	lines_row(line, &row, &style);
	put_line(FIRST_ROW, line, attributes_of(screen, &row));
	for (size_t i = 0; i < 3 && rows > 1; i++) {
		bool has_line = i == 0	 ? view_reason(screen->view, screen->chosen, line, sizeof(line))
				: i == 1 ? lost_of(watch, screen->chosen, line)
					 : holder_of(watch, screen->chosen, line);

		if (!has_line)
			continue;
		if ((size_t)getmaxx(stdscr) < strlen(line))
			line[getmaxx(stdscr)] = '\0';
		put_line((int)first++, line, A_NORMAL);
		rows--;
	}
	report_stack(&watch->report, site, &watch->stack);
	if (screen->stack_top + 1 > watch->stack.nr_frames)
		screen->stack_top = watch->stack.nr_frames ? watch->stack.nr_frames - 1 : 0;
	for (size_t i = 0; i < rows; i++) {
		size_t at = screen->stack_top + i;

		line[0] = '\0';
		if (at < watch->stack.nr_frames)
			format_frame(line, at, &watch->stack.frames[at]);
		put_line((int)(first + i), line, A_NORMAL);
	}
}

static void draw_help(void)
{
	size_t nr_lines = sizeof(help) / sizeof(help[0]);

	put_line(LINES_HEADS, "keys", A_REVERSE);
	for (size_t i = 0; i < screen_rows(); i++)
		put_line((int)(FIRST_ROW + i), i < nr_lines ? help[i] : "", A_NORMAL);
}

static void draw_foot(const struct screen *screen)
{
	char line[512];

	if (screen->is_typing)
		(void)snprintf(line, sizeof(line), "show only: %s_", screen->filter);
	else if (screen->news[0])
		(void)snprintf(line, sizeof(line), "%s", screen->news);
	else if (screen->mode != SCREEN_LIST)
		(void)snprintf(line, sizeof(line), "enter or esc: back");
	else
		(void)snprintf(line, sizeof(line), "%s%zu/%zu by %s%s%s  ? help  q quit",
			screen->is_paused ? "PAUSED  " : "", screen->nr_order ? screen->cursor + 1 : 0,
			screen->nr_order, watch_sort_name(screen->sort), screen->filter[0] ? "  only " : "",
			screen->filter);
	if ((size_t)getmaxx(stdscr) < sizeof(line))
		line[getmaxx(stdscr) - 1] = '\0';
	put_line(getmaxy(stdscr) - 1, line, screen->is_paused ? A_BOLD : A_NORMAL);
}

bool screen_draw(struct screen *screen, uint32_t patience_ms)
{
	struct watch *watch = &screen->view->watch;

	watch->patience_ns = report_now_ns() + patience_ms * UINT64_C(1000000);
	watch->nr_pending = 0;
	screen->nr_order = watch_order(
		watch, screen->sort, screen->filter, &screen->order, &screen->max_order);
	find_cursor(screen);
	draw_head(screen);
	if (screen->mode == SCREEN_HELP)
		draw_help();
	else if (screen->mode == SCREEN_SITE && screen->nr_order)
		draw_site(screen);
	else
		draw_list(screen);
	draw_foot(screen);
	(void)refresh();
	return !watch->nr_pending;
}
