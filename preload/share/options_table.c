/* SPDX-License-Identifier: MIT */
/*
 * options_table.c - the one table of settings, and the help that is made from it.
 *
 * Everything else about an option follows from its row: how its text is read, what is wrong with a bad one,
 * the launcher's long option, the table in the README.
 */
#include "preload/share/options_parts.h"

#include <stdio.h>
#include <string.h>

enum {
	HELP_COLUMN = 27, /* where the texts of help=1 start */
	HELP_WIDTH = 80,
};

#define FIELD(member) .name = #member, .offset = offsetof(struct lw_options, member)
#define STRING(member)                                                                             \
	FIELD(member), .type = LW_OPTION_STRING,                                                   \
		       .max_bytes = sizeof(((struct lw_options *)NULL)->member)
#define NUMBER(member, from, to) FIELD(member), .type = LW_OPTION_U32, .least = (from), .most = (to)
#define BOOL(member) FIELD(member), .type = LW_OPTION_BOOL, .least = 0, .most = 1
#define CHOICE(member, words) FIELD(member), .type = LW_OPTION_CHOICE, .choices = (words)

static const struct lw_option_spec table[] = {
	{STRING(json), .fallback = "",
		.help = "file for the JSON report (%p pid, %e program, %h host, %t time, %n "
			"number, %% percent); if it cannot be written, stderr says so"},
	{STRING(log_path), .fallback = "",
		.help = "file for the text report, % as in json; stderr if empty or not writable"},
	{CHOICE(report, "auto|always|never"), .fallback = "auto",
		.help = "the text report: auto writes it only when there is something to say"},
	{CHOICE(scan, "exit|never|live"), .fallback = "exit",
		.help = "search for memory nothing points to: at exit, never, or only live when asked"},
	{FIELD(scan_every), .type = LW_OPTION_SECONDS, .least = 0, .most = 604800, .fallback = "0",
		.help = "search the running process so often (60s, 10m, 2h); 0: only when asked"},
	{CHOICE(freeze, "ptrace|signal|none"), .fallback = "ptrace",
		.help = "how threads are stopped for a search: ptrace, else a real-time signal, or not"},
	{CHOICE(show, "few|all"), .fallback = "few",
		.help = "of the memory that is still pointed to, list the largest few sites or all"},
	{NUMBER(exitcode, 0, 255), .fallback = "0",
		.help = "exit status of a program that leaks; 0 leaves its own status alone"},
	{STRING(follow), .fallback = "no",
		.help = "child processes that report on stderr too: yes, no, or patterns of "
			"program names (* and ?) with commas between; a file name with %p "
			"serves them all"},
	{STRING(suppressions), .fallback = "",
		.help = "file of leak:PATTERN lines, as LeakSanitizer reads it; bad lines "
			"are named"},
	{.name = "min_bytes",
		.offset = offsetof(struct lw_options, min_bytes),
		.type = LW_OPTION_BYTES,
		.least = 0,
		.most = UINT64_MAX,
		.fallback = "0",
		.help = "sites holding fewer bytes (k, M, G allowed) are summed up, not listed"},
	{NUMBER(top, 0, 1000000), .fallback = "100",
		.help = "sites listed in the text report, the worst first; 0 lists all"},
	{NUMBER(depth, 1, 128), .fallback = "32",
		.help = "stack frames kept for each allocation; deeper stacks are marked as cut"},
	{FIELD(sample), .type = LW_OPTION_BYTES, .least = 0, .most = UINT64_C(1) << 40, .fallback = "0",
		.help = "record only one allocation in so many bytes on average (512k), chosen at "
			"random: figures are then estimates, nothing is searched, and of wrong "
			"releases only those of recorded blocks are seen; 0 records all"},
	{NUMBER(max_sites, 1024, 1048576), .fallback = "262144",
		.help = "different call stacks there is room for; events past it are counted as "
			"one unknown site, and the report says how many"},
	{BOOL(full_stacks), .fallback = "0",
		.help = "show the innermost frames in libc, libstdc++ and LeakWatch too"},
	{BOOL(runtime), .fallback = "0",
		.help = "list the lasting memory of the C and C++ libraries themselves too"},
	{CHOICE(color, "auto|always|never"), .fallback = "auto",
		.help = "colours; auto means on a terminal, unless NO_COLOR is set"},
	{STRING(programs), .fallback = "",
		.help = "folder of leakwatch-snapshot and leakwatch-cleaner; empty means beside "
			"the library; without them the report has no names"},
	{STRING(black_box), .fallback = "",
		.help = "file (% as in json) that holds the tables while the program runs, and "
			"outlives it even when its container goes; `leakwatch-snapshot FILE` "
			"reports from it; reserves 28 MiB of disk, has room for 32768 sites; only "
			"that file tells of a kill; falls back to shared memory"},
	{BOOL(stay), .fallback = "0",
		.help = "the launcher stays as the program's parent, reaps, forwards signals, and "
			"reports when the program is killed: for process 1 of a container"},
	{BOOL(verbose), .fallback = "0", .help = "say on stderr what LeakWatch does and why"},
	{BOOL(help), .fallback = "0", .help = "write this list to stderr and run on"},
};

const struct lw_option_spec *lw_options_table(size_t *nr_options)
{
	*nr_options = sizeof(table) / sizeof(table[0]);
	return table;
}

const struct lw_option_spec *lw_options_find(const char *key)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].name, key))
			return &table[i];
	return NULL;
}

/* How much of text goes on one line of `room` columns: up to the last blank that fits. */
static size_t line_length(const char *text, size_t room)
{
	size_t n = strlen(text);

	if (n <= room)
		return n;
	for (n = room; n && text[n] != ' '; n--)
		;
	return n ? n : room;
}

static void help_option(
	const struct lw_option_spec *spec, lw_options_complain_fn *emit, void *context)
{
	static const char *const placeholder[] = {[LW_OPTION_BOOL] = "0|1",
		[LW_OPTION_U32] = "N",
		[LW_OPTION_U64] = "N",
		[LW_OPTION_BYTES] = "BYTES",
		[LW_OPTION_STRING] = "TEXT",
		[LW_OPTION_SECONDS] = "TIME"};
	char left[HELP_COLUMN + 16], range[48] = "", text[512], line[HELP_WIDTH + 1];
	const char *p = text;

	snprintf(left, sizeof(left), "  %s=%s", spec->name,
		spec->choices ? spec->choices : placeholder[spec->type]);
	if (spec->type == LW_OPTION_U32)
		snprintf(range, sizeof(range), "%llu to %llu, ", (unsigned long long)spec->least,
			(unsigned long long)spec->most);
	snprintf(text, sizeof(text), "%s (%sdefault %s)", spec->help, range,
		*spec->fallback ? spec->fallback : "empty");
	do {
		/* a long left side pushes the first line's text to the right */
		size_t column = strlen(left) < HELP_COLUMN ? HELP_COLUMN : strlen(left) + 1;
		size_t n = line_length(p, HELP_WIDTH - column);

		snprintf(line, sizeof(line), "%-*s%.*s", (int)column, left, (int)n, p);
		emit(context, line);
		left[0] = '\0';
		p += n + (p[n] == ' ');
	} while (*p);
}

void lw_options_help(lw_options_complain_fn *emit, void *context)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		help_option(&table[i], emit, context);
}
