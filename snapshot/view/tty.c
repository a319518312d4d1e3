/* SPDX-License-Identifier: MIT */
/*
 * tty.c - the screen's keys and its loop; see view.h.
 *
 * While it is paused records are thrown away, not kept: the target must not notice that a person
 * reads. What was missed is read again, whole, when it goes on.
 */
#include "snapshot/view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/alloc.h"
#include "snapshot/report/deliver.h"
#include "snapshot/report/format.h"
#include "snapshot/report/output.h"
#include "snapshot/view/screen.h"

enum {
	WAIT_MS = 200,
	NAMES_MS = 150, /* for names, between two looks at the keyboard */
	ESCAPE = 27,
	DELETE = 127,
};

static bool keep_record(void *file, const struct lw_wire_head *record)
{
	return fwrite(record, record->bytes, 1, file) == 1;
}

static void save(struct screen *screen)
{
	char name[64], *records = NULL;
	size_t nr_bytes = 0;
	FILE *memory;
	int err = 0;

	if (!screen->view->live)
		return;
	(void)snprintf(name, sizeof(name), "leakwatch-%d-%llu.lw", (int)live_pid(screen->view->live),
		(unsigned long long)(screen->view->watch.at_ns / 1000000000));
	memory = alloc_check(open_memstream(&records, &nr_bytes));
	if (!live_dump(screen->view->live, keep_record, memory))
		err = -EIO;
	if (fclose(memory))
		err = -ENOMEM;
	if (!err)
		err = output_file(name, OUTPUT_REPLACE, records, nr_bytes);
	free(records);
	if (err)
		(void)snprintf(screen->news, sizeof(screen->news), "cannot write %s: %s", name, output_error(err));
	else
		(void)snprintf(screen->news, sizeof(screen->news), "saved in %s", name);
}

static bool watch_it(void *view, const struct lw_wire_head *record)
{
	return watch_record(&((struct view *)view)->watch, record);
}

static bool forget_it(void *unused, const struct lw_wire_head *record)
{
	(void)unused;
	(void)record;
	return true;
}

static void look_for_lost(struct screen *screen)
{
	struct source_error error = {0};

	if (!screen->view->live || screen->scan.region)
		return;
	if (source_scan_begin(&screen->scan, live_pid(screen->view->live), &error))
		(void)snprintf(screen->news, sizeof(screen->news), "looking for lost memory ...");
	else
		(void)snprintf(screen->news, sizeof(screen->news), "%.150s", error.text);
}

static bool take_found(void *view, const struct lw_wire_head *record)
{
	bool is_found = record->type == LW_WIRE_SCAN || record->type == LW_WIRE_SCAN_SITE ||
			record->type == LW_WIRE_CHAIN;

	return !is_found || watch_it(view, record);
}

/* False: it has no row now, or a person is on another page. */
static bool go_to(struct screen *screen, uint32_t site)
{
	for (size_t i = 0; i < screen->nr_order && screen->mode == SCREEN_LIST; i++) {
		if (screen->order[i] != site)
			continue;
		screen->cursor = i;
		screen->chosen = site;
		screen->is_held = true;
		return true;
	}
	return false;
}

/* The row that lost most is chosen, so that the next key shows its stack. */
static void say_lost(struct screen *screen)
{
	struct watch *watch = &screen->view->watch;
	const struct model *model = watch->decode.model;
	char bytes[FORMAT_BYTES], blocks[FORMAT_BYTES];
	struct report_sum lost;
	uint32_t most;

	if (!model_is_scanned(model)) {
		(void)snprintf(screen->news, sizeof(screen->news), "not known what is lost: %.120s",
			model->has_scan ? model_scan_reason(model->scan.why) : "no answer");
		return;
	}
	watch->patience_ns = report_now_ns() + NAMES_MS * UINT64_C(1000000);
	lost = watch_lost(watch, &most);
	(void)snprintf(screen->news, sizeof(screen->news), "lost: %s in %s%s", format_size(bytes, lost.bytes),
		format_count(blocks, lost.blocks, "block"),
		!lost.blocks		? ""
		: !go_to(screen, most)	? "; see the rows with lost or !"
		: lost.nr_sites > 1	? ", most of it here; enter shows where from"
					: ", all of it here; enter shows where from");
}

/* The search goes on in the target; false: there is nothing new of it. */
static bool take_answer(struct screen *screen)
{
	struct source_error error = {0};
	enum source_answer answer;

	if (!screen->scan.region)
		return false;
	answer = source_scan_look(&screen->scan, &error);
	if (answer == SOURCE_NOT_YET)
		return false;
	source_scan_end(&screen->scan);
	if (answer == SOURCE_NO_ANSWER) {
		(void)snprintf(screen->news, sizeof(screen->news), "%.150s", error.text);
		return true;
	}
	(void)live_dump(screen->view->live, take_found, screen->view);
	say_lost(screen);
	return true;
}

static void toggle_pause(struct screen *screen)
{
	screen->is_paused = !screen->is_paused;
	if (!screen->is_paused && screen->view->live)
		(void)live_refresh(screen->view->live, watch_it, screen->view);
}

static void change_interval(struct screen *screen, bool is_faster)
{
	uint32_t ms = screen->view->interval_ms;

	ms = is_faster ? ms / 2 : ms * 2;
	ms = ms < LW_LEAST_TICK_MS ? LW_LEAST_TICK_MS : ms > LW_MOST_TICK_MS ? LW_MOST_TICK_MS : ms;
	screen->view->interval_ms = ms;
	if (screen->view->live)
		live_set_interval(screen->view->live, ms);
}

static void move_cursor(struct screen *screen, long by)
{
	long to = (long)screen->cursor + by;

	if (screen->mode == SCREEN_SITE) {
		to = (long)screen->stack_top + by;
		screen->stack_top = to < 0 ? 0 : (size_t)to;
		return;
	}
	to = to < 0 ? 0 : to >= (long)screen->nr_order ? (long)screen->nr_order - 1 : to;
	if (to < 0)
		return;
	screen->is_held = to > 0;
	screen->cursor = (size_t)to;
	screen->chosen = screen->order[to];
}

static void type(struct screen *screen, int key)
{
	size_t used = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen->is_typing = false;
	} else if (key == ESCAPE) {
		screen->is_typing = false;
		screen->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == DELETE || key == 8) && used) {
		screen->filter[used - 1] = '\0';
	} else if (key >= ' ' && key < 256 && key != DELETE && used + 1 < WATCH_FILTER_BYTES) {
		screen->filter[used] = (char)key;
		screen->filter[used + 1] = '\0';
	}
	screen->cursor = screen->top = 0;
	screen->is_held = false;
}

static void move_by_key(struct screen *screen, int key)
{
	long rows = (long)screen_rows();

	switch (key) {
	case KEY_UP:
	case 'k':
		move_cursor(screen, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_cursor(screen, 1);
		break;
	case KEY_PPAGE:
		move_cursor(screen, -rows);
		break;
	case KEY_NPAGE:
		move_cursor(screen, rows);
		break;
	case KEY_HOME:
	case 'g':
		move_cursor(screen, -(long)screen->nr_order - (long)screen->stack_top);
		break;
	case KEY_END:
	case 'G':
		move_cursor(screen, (long)screen->nr_order);
		break;
	default:
		break;
	}
}

static void open_or_back(struct screen *screen, bool is_enter)
{
	if (screen->mode == SCREEN_LIST && is_enter && screen->nr_order)
		screen->mode = SCREEN_SITE;
	else
		screen->mode = SCREEN_LIST;
	screen->is_held = screen->mode == SCREEN_SITE || screen->cursor > 0;
	screen->stack_top = 0;
}

/* False: quit. */
static bool take_key(struct screen *screen, int key)
{
	screen->news[0] = '\0';
	if (screen->is_typing) {
		type(screen, key);
		return true;
	}
	switch (key) {
	case 'q':
		return false;
	case '?':
	case 'h':
	case KEY_F(1):
		screen->mode = screen->mode == SCREEN_HELP ? SCREEN_LIST : SCREEN_HELP;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		open_or_back(screen, true);
		break;
	case ESCAPE:
		if (screen->mode == SCREEN_LIST)
			screen->filter[0] = '\0';
		open_or_back(screen, false);
		break;
	case 's':
		screen->sort = (screen->sort + 1) % WATCH_NR_SORTS;
		break;
	case 'S':
		screen->sort = (screen->sort + WATCH_NR_SORTS - 1) % WATCH_NR_SORTS;
		break;
	case '/':
		screen->is_typing = true;
		screen->mode = SCREEN_LIST;
		break;
	case 'p':
	case ' ':
		toggle_pause(screen);
		break;
	case 'r':
		watch_reset_baseline(&screen->view->watch);
		break;
	case 'b':
		screen->has_exact = !screen->has_exact;
		break;
	case '+':
	case '-':
		change_interval(screen, key == '+');
		break;
	case 'l':
		look_for_lost(screen);
		break;
	case 'w':
		save(screen);
		break;
	default:
		move_by_key(screen, key);
	}
	return true;
}

/* All keys that wait; false: quit. A terminal that is gone is one that can be read and has nothing. */
static bool take_keys(struct screen *screen, bool *has_any)
{
	struct pollfd input = {0, POLLIN, 0};
	int key;

	*has_any = false;
	while ((key = getch()) != ERR) {
		*has_any = true;
		if (key != KEY_RESIZE && !take_key(screen, key))
			return false;
	}
	return *has_any || poll(&input, 1, 0) <= 0 || !(input.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static enum live_news wait_for_news(struct screen *screen, uint32_t wait_ms)
{
	struct view *view = screen->view;

	if (!view->live) {
		struct pollfd input = {0, POLLIN, 0};

		(void)poll(&input, 1, (int)wait_ms);
		return LIVE_NOTHING;
	}
	if (!screen->is_paused)
		return view_wait(view, 0, wait_ms);
	if (live_wait(view->live, 0, wait_ms, forget_it, NULL) == LIVE_END) {
		toggle_pause(screen);
		view->has_ended = true;
		return LIVE_END;
	}
	return LIVE_NOTHING;
}

static bool run(struct screen *screen)
{
	bool has_names = screen_draw(screen, 0), has_keys;

	for (;;) {
		enum live_news news = wait_for_news(screen, has_names ? WAIT_MS : 1);

		if (news == LIVE_FAILED)
			return false;
		if (!take_keys(screen, &has_keys))
			return true;
		has_keys |= take_answer(screen);
		if (has_keys || news != LIVE_NOTHING || !has_names || is_term_resized(LINES, COLS))
			has_names = screen_draw(screen, NAMES_MS);
	}
}

/* The first tick comes before the screen: an error is a line on the terminal as it was. */
static bool begin(struct view *view)
{
	enum live_news news;

	do
		news = view_wait(view, -1, WAIT_MS);
	while (news == LIVE_NOTHING);
	return news != LIVE_FAILED;
}

static bool is_tick(void *found, const struct lw_wire_head *record)
{
	*(bool *)found |= record->type == LW_WIRE_TICK;
	return !*(bool *)found;
}

/* Records of a watch have ticks; those of a moment are better shown as a report. */
static bool is_watch_file(const char *name)
{
	struct source_error ignored;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool has_tick = false;

	if (fd < 0)
		return false;
	(void)source_stream(fd, name, is_tick, &has_tick, &ignored);
	close(fd);
	return has_tick;
}

int view_screen(const struct view_settings *settings)
{
	struct screen screen = {.has_color = deliver_has_color(settings->options, 1),
		.has_exact = settings->has_exact};
	struct view view;
	int status = view_open(&view, settings);
	bool is_good;

	if (status)
		return status;
	if (!settings->is_pid && !is_watch_file(settings->what)) {
		view_close(&view);
		return -1;
	}
	if (!begin(&view)) {
		view_close(&view);
		return 1;
	}
	(void)setlocale(LC_CTYPE, "");
	screen.view = &view;
	screen.has_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	(void)setenv("ESCDELAY", "25", 0);
	if (!newterm(NULL, stdout, stdin)) {
		(void)fprintf(stderr, "leakwatch-snapshot: cannot use terminal %s; try --columns\n", getenv("TERM"));
		view_close(&view);
		return 1;
	}
	(void)cbreak();
	(void)noecho();
	(void)nodelay(stdscr, true);
	(void)keypad(stdscr, true);
	(void)curs_set(0);
	screen_start(&screen);
	is_good = run(&screen);
	(void)endwin();
	source_scan_end(&screen.scan);
	view_close(&view);
	free(screen.order);
	return is_good ? 0 : 1;
}
