/* SPDX-License-Identifier: MIT */
/*
 * command.c - the command line of leakwatch-snapshot.
 *
 * Settings that a person may give here have the names of the options table, and are checked by it;
 * they are laid over those the process was started with.
 */
#include "snapshot/command.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/share/options.h"
#include "preload/share/region.h"

static const char usage[] =
	"usage: leakwatch-snapshot [OPTIONS] PID|FILE|-\n"
	"\n"
	"Watches a process that runs under LeakWatch, or reports what it holds now; the\n"
	"same for a file of saved records (- is stdin). In a terminal a PID, or the file\n"
	"of a watch, gives a screen that follows it (press ? for its keys); elsewhere, or\n"
	"with --once, one report.\n"
	"\n"
	"  -1, --once            one report of process PID, then end\n"
	"  -C, --columns         a block of plain columns each tick\n"
	"  -i, --interval=S      columns every S seconds, 0.1 to 3600 (1); the screen has the\n"
	"                        keys + and - for that\n"
	"      --count=N         end after N ticks, 0 never (1 with --columns alone; else\n"
	"                        until the process ends)\n"
	"  -b, --bytes           exact numbers in the columns\n"
	"  -s, --save=FILE       save the records of PID in FILE (- is stdout), to be\n"
	"                        looked at later or elsewhere; with --interval or --count\n"
	"                        those of a watch\n"
	"  -j, --json[=FILE]     JSON instead of text; with FILE, JSON there and the text\n"
	"                        on stdout; with --interval or --count an object a tick,\n"
	"                        one a line\n"
	"  -L, --leaks           have PID look for memory nothing points to any more first;\n"
	"                        the exit status is 1 if there is any, 3 if it could not\n"
	"                        be looked for; one that only waits or computes is made\n"
	"                        to look by ptrace, where that is allowed\n"
	"  -l, --list            list the watched processes of this user\n"
	"  -n, --top=N           list the N worst sites, 0 all (as the process was\n"
	"                        started, else 100); in columns the N largest (20)\n"
	"  -m, --min-bytes=N     only sum up sites that hold less (0)\n"
	"  -S, --suppressions=FILE  do not list what matches the lines leak:PATTERN\n"
	"  -f, --full-stacks     show the innermost frames in libc and libstdc++ too\n"
	"  -r, --runtime         list the lasting memory of the C runtime itself too\n"
	"  -c, --color=WHEN      auto, always or never (auto: on a terminal, unless\n"
	"                        NO_COLOR is set)\n"
	"  -h, --help            this text\n"
	"  -V, --version         the version\n"
	"\n"
	"Used by the library and the cleaner:\n"
	"      --report          write the reports of an ended process as its options say;\n"
	"                        reads the records from FILE or - unless --shmid is given\n"
	"      --shmid=ID        its region\n"
	"      --state=STATE     live, exit, _exit, quick_exit or killed\n"
	"      --signal=N        the signal that killed it\n"
	"      --event=N         only its wrong release number N, as it happens\n"
	"      --done-fd=N       where to say that all is written\n"
	"      --stderr-fd=N     its stderr (2)\n";

enum {
	OPT_REPORT = 256,
	OPT_SHMID,
	OPT_STATE,
	OPT_SIGNAL,
	OPT_DONE_FD,
	OPT_STDERR_FD,
	OPT_EVENT,
	OPT_COUNT,
};

static const struct option long_options[] = {
	{"once", no_argument, NULL, '1'},
	{"columns", no_argument, NULL, 'C'},
	{"interval", required_argument, NULL, 'i'},
	{"count", required_argument, NULL, OPT_COUNT},
	{"bytes", no_argument, NULL, 'b'},
	{"save", required_argument, NULL, 's'},
	{"json", optional_argument, NULL, 'j'},
	{"leaks", no_argument, NULL, 'L'},
	{"list", no_argument, NULL, 'l'},
	{"top", required_argument, NULL, 'n'},
	{"min-bytes", required_argument, NULL, 'm'},
	{"suppressions", required_argument, NULL, 'S'},
	{"full-stacks", no_argument, NULL, 'f'},
	{"runtime", no_argument, NULL, 'r'},
	{"color", required_argument, NULL, 'c'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"report", no_argument, NULL, OPT_REPORT},
	{"shmid", required_argument, NULL, OPT_SHMID},
	{"state", required_argument, NULL, OPT_STATE},
	{"signal", required_argument, NULL, OPT_SIGNAL},
	{"done-fd", required_argument, NULL, OPT_DONE_FD},
	{"event", required_argument, NULL, OPT_EVENT},
	{"stderr-fd", required_argument, NULL, OPT_STDERR_FD},
	{NULL, 0, NULL, 0},
};

__attribute__((noreturn, format(printf, 1, 2))) static void usage_error(const char *format, ...)
{
	va_list ap;

	fputs("leakwatch-snapshot: ", stderr);
	va_start(ap, format);
	(void)vfprintf(stderr, format, ap);
	va_end(ap);
	fputs("; try --help\n", stderr);
	exit(2);
}

int command_int(const char *name, const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || end == text || value < 0 || value > INT32_MAX)
		usage_error("--%s=%s is not a number", name, text);
	return (int)value;
}

static uint32_t parse_interval(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (*end || end == text || !(seconds * 1000 >= LW_LEAST_TICK_MS && seconds * 1000 <= LW_MOST_TICK_MS))
		usage_error("--interval=%s is not a number of seconds from 0.1 to 3600", text);
	return (uint32_t)(seconds * 1000 + 0.5);
}

static const char *parse_state(const char *text)
{
	static const char *const states[] = {"live", "exit", "_exit", "quick_exit", "killed"};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (!strcmp(states[i], text))
			return states[i];
	usage_error("--state=%s is not live, exit, _exit, quick_exit or killed", text);
}

/* line is "leakwatch: command line: top=x: not a number, using 100"; here nothing is used instead.
 */
static void refuse_setting(void *context, const char *line)
{
	const char *complaint = strstr(line, "line: ");
	const char *end = strstr(line, ", using ");

	(void)context;
	complaint = complaint ? complaint + 6 : line;
	usage_error("%.*s", end ? (int)(end - complaint) : (int)strlen(complaint), complaint);
}

/* A setting of the options table; a wrong value ends the program. */
static void add_setting(struct command *command, const char *key, const char *value)
{
	struct lw_options options;

	lw_options_init(&options);
	(void)lw_options_set(&options, key, value, "command line", refuse_setting, NULL);
	if (command->nr_settings < sizeof(command->settings) / sizeof(command->settings[0]))
		command->settings[command->nr_settings++] = (struct setting){key, value};
}

static void take_option(struct command *command, int opt)
{
	switch (opt) {
	case '1':
		command->is_once = true;
		break;
	case 'C':
		command->is_columns = true;
		break;
	case 'i':
		command->has_interval = true;
		command->interval_ms = parse_interval(optarg);
		break;
	case OPT_COUNT:
		command->has_count = true;
		command->nr_ticks = (uint32_t)command_int("count", optarg);
		break;
	case 'b':
		command->has_exact = true;
		break;
	case 's':
		command->save = optarg;
		break;
	case 'j':
		command->has_json = true;
		command->json = optarg;
		break;
	case 'L':
		command->has_leaks = true;
		break;
	case 'l':
		command->is_list = true;
		break;
	case 'n':
		add_setting(command, "top", optarg);
		break;
	case 'm':
		add_setting(command, "min_bytes", optarg);
		break;
	case 'S':
		add_setting(command, "suppressions", optarg);
		break;
	case 'f':
		add_setting(command, "full_stacks", "1");
		break;
	case 'r':
		add_setting(command, "runtime", "1");
		break;
	case 'c':
		add_setting(command, "color", optarg);
		break;
	case 'h':
		fputs(usage, stdout);
		exit(fflush(stdout) ? 1 : 0);
	case 'V':
		puts("leakwatch-snapshot " LW_VERSION);
		exit(fflush(stdout) ? 1 : 0);
	case OPT_REPORT:
		command->is_report = true;
		break;
	case OPT_SHMID:
		command->shmid = command_int("shmid", optarg);
		break;
	case OPT_STATE:
		command->state = parse_state(optarg);
		break;
	case OPT_SIGNAL:
		command->signal = command_int("signal", optarg);
		break;
	case OPT_EVENT:
		command->event = command_int("event", optarg);
		break;
	case OPT_DONE_FD:
		command->done_fd = command_int("done-fd", optarg);
		break;
	case OPT_STDERR_FD:
		command->stderr_fd = command_int("stderr-fd", optarg);
		break;
	default:
		exit(2); /* getopt_long has said what is wrong */
	}
}

bool command_is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

bool command_is_watch(const struct command *command)
{
	return command->is_columns || command->has_interval || command->has_count;
}

/* What goes together, and what the counts mean then. */
static void settle(struct command *command)
{
	if (!command_is_watch(command))
		return;
	if (command->is_once)
		usage_error("--once is one report; it does not go with --columns, --interval or --count");
	if (command->is_report || command->is_list || command->shmid >= 0)
		usage_error("--columns, --interval and --count need a PID or a FILE");
	if (command->json)
		usage_error("--json=%s: a watch writes its JSON to stdout; --save keeps its records", command->json);
	if (!command->has_interval && !command->has_count)
		command->nr_ticks = command_is_number(command->what) ? 1 : 0;
}

struct command command_parse(int argc, char **argv)
{
	struct command command = {
		.shmid = -1, .interval_ms = 1000, .done_fd = -1, .stderr_fd = 2, .event = -1};
	int opt;

	while ((opt = getopt_long(argc, argv, "1Ci:bs:j::Lln:m:S:frc:hV", long_options, NULL)) != -1)
		take_option(&command, opt);
	if (optind < argc)
		command.what = argv[optind++];
	if (optind < argc)
		usage_error("one process or file at a time: '%s' is too much", argv[optind]);
	if (command.is_list || command.shmid >= 0) {
		if (command.what)
			usage_error("'%s' is not needed here", command.what);
	} else if (!command.what) {
		usage_error("which process? give a PID, a FILE or -");
	}
	if (command.what && command_is_number(command.what)) {
		errno = 0;
		if (strtol(command.what, NULL, 10) > INT32_MAX || errno)
			usage_error("%s is not a PID", command.what);
	}
	if (command.has_leaks && (!command.what || !command_is_number(command.what)))
		usage_error("--leaks needs the PID of a watched process");
	if (command.save && (!command.what || !command_is_number(command.what)))
		usage_error("--save needs the PID of a watched process");
	settle(&command);
	return command;
}
