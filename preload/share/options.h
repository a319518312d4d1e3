/* SPDX-License-Identifier: MIT */
/*
 * options.h - the settings of LeakWatch, from one table.
 *
 * Text form: key=value:key=value. A value that holds ':' or blanks is quoted with ' or ". Separators are ':',
 * ',' is NOT one (patterns use it), blanks between settings are skipped. The parser, help=1, the
 * launcher's --help and the table in the README all come from lw_options_table().
 *
 * Runs inside the target, at start-up: no allocation, no stdio, no locale. Parsing never fails: a
 * bad value makes one line naming option, value and range, and leaves the default standing; an
 * unknown key makes one line and is ignored.
 */
#ifndef LW_SHARE_OPTIONS_H
#define LW_SHARE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LW_OPTION_PATH_BYTES = 1024, LW_OPTION_TEXT_BYTES = 512 };

enum lw_option_report { LW_REPORT_AUTO, LW_REPORT_ALWAYS, LW_REPORT_NEVER };
enum lw_option_scan { LW_SCAN_OPTION_EXIT, LW_SCAN_OPTION_NEVER, LW_SCAN_OPTION_LIVE };
enum lw_option_freeze { LW_FREEZE_PTRACE, LW_FREEZE_SIGNAL, LW_FREEZE_NONE };
enum lw_option_show { LW_SHOW_FEW, LW_SHOW_ALL };
enum lw_option_color { LW_COLOR_AUTO, LW_COLOR_ALWAYS, LW_COLOR_NEVER };

struct lw_options {
	char json[LW_OPTION_PATH_BYTES];	 /* "" none; JSON report of schema 1 is written there */
	char log_path[LW_OPTION_PATH_BYTES];	 /* "" stderr; text report is written there */
	char suppressions[LW_OPTION_PATH_BYTES]; /* "" none; file in LeakSanitizer's syntax */
	char programs[LW_OPTION_PATH_BYTES];	 /* "" found beside the library; folder of leakwatch-snapshot, -cleaner */
	char black_box[LW_OPTION_PATH_BYTES];	 /* "" none; file that holds the region */
	char follow[LW_OPTION_TEXT_BYTES];	 /* "no", "yes" or patterns of program names, comma between */
	uint64_t min_bytes;	/* sites that hold less are not listed, only summed */
	uint64_t sample;	/* mean bytes from one recorded allocation to the next; 0: all are recorded */
	uint32_t depth;		/* frames kept per stack, 1..128 */
	uint32_t max_sites;	/* room in the region, 1024..1048576 */
	uint32_t exitcode;	/* 0 unchanged; else status when something is leaked, 1..255 */
	uint32_t report;	/* enum lw_option_report */
	uint32_t scan;		/* enum lw_option_scan */
	uint32_t show;		/* enum lw_option_show */
	uint32_t freeze;	/* enum lw_option_freeze */
	uint32_t scan_every;	/* seconds between scans of a running process; 0: only when asked */
	uint32_t color;		/* enum lw_option_color */
	uint32_t top;		/* sites listed in the text report, 0 all */
	bool full_stacks;	/* show the frames in libc, libstdc++ too */
	bool runtime;		/* list the C library's own lasting memory too */
	bool stay;		/* the launcher stays as parent, and reports for the cleaner */
	bool verbose;
	bool help;
};

enum lw_option_type { LW_OPTION_BOOL, LW_OPTION_U32, LW_OPTION_U64, LW_OPTION_BYTES, LW_OPTION_CHOICE,
	LW_OPTION_STRING, LW_OPTION_SECONDS };

/* One row of the table. */
struct lw_option_spec {
	const char *name;
	uint8_t type;		/* enum lw_option_type */
	uint16_t offset;	/* in struct lw_options */
	uint16_t max_bytes;	/* strings: room with the NUL */
	uint64_t least, most;	/* numbers */
	const char *choices;	/* LW_OPTION_CHOICE: "auto|always|never", in the order of the enum */
	const char *fallback;	/* the default as text */
	const char *help;	/* one line: what, unit, what happens on error */
};

const struct lw_option_spec *lw_options_table(size_t *nr_options);

/* Called with one complete line without newline for each complaint. */
typedef void lw_options_complain_fn(void *context, const char *line);

void lw_options_init(struct lw_options *options);

/* Settings in text are laid over *options. origin names the text in complaints ("LEAKWATCH_OPTIONS"). */
void lw_options_parse(struct lw_options *options, const char *text, const char *origin,
		lw_options_complain_fn *complain, void *context);

/* One setting; false: unknown key. A bad value complains and returns true. */
bool lw_options_set(struct lw_options *options, const char *key, const char *value,
		const char *origin, lw_options_complain_fn *complain, void *context);

/* Writes name, default and help, one option a line, 80 columns, through emit(context, line). */
void lw_options_help(lw_options_complain_fn *emit, void *context);

/* Does `follow` cover a program of this name (basename)? "yes", "no", or shell patterns. */
bool lw_options_follows(const struct lw_options *options, const char *program);

/*
 * lw_options_expand - the file name a template stands for: %p pid, %e program, %h host, %t time
 * (seconds since 1970), %n a counter that makes the name new, %% a percent sign. False: too long.
 * has_pid: whether %p stood in it (then children get files of their own).
 */
struct lw_options_names {
	int32_t pid;
	const char *program;
	const char *host;
	uint64_t time_s;
	uint32_t counter;
};
bool lw_options_expand(char *out, size_t out_bytes, const char *template_text,
		const struct lw_options_names *names);
bool lw_options_has_pid(const char *template_text);

/* One line through emit for each file name with a % that stands for nothing: it is taken as it is. */
void lw_options_check_names(const struct lw_options *options, lw_options_complain_fn *emit, void *context);

#endif
