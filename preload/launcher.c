/* SPDX-License-Identifier: MIT */
/*
 * launcher.c - `leakwatch [--option[=value]]... [--] PROGRAM [ARGS...]`: sets LD_PRELOAD and
 * LEAKWATCH_OPTIONS, then becomes the program.
 *
 * The long options are the rows of the option table and nothing else, so that what the environment
 * takes and what the command line takes never differ. A bad one is an error here (status 2), since
 * somebody just typed it; in the environment it costs a line.
 *
 * The program is looked at before it is run (inspect.h): where we cannot see into it one line says so, and
 * it runs as if we were not there. With --stay the launcher remains as its parent (stay.h).
 * Statuses are those of env(1).
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/launch/inspect.h"
#include "preload/launch/stay.h"
#include "preload/share/options.h"

enum {
	STATUS_USAGE = 2,
	STATUS_OWN_FAILURE = 125,
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
};

#define LIBRARY "libleakwatch.so"
#define OPTIONS_VARIABLE "LEAKWATCH_OPTIONS"

__attribute__((format(printf, 2, 3), noreturn)) static void fail(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("leakwatch: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

/* ---- the command line ---- */

struct settings {
	struct lw_options checked; /* takes each setting once, to have it checked */
	char *text;		   /* what goes behind the existing LEAKWATCH_OPTIONS */
	size_t text_bytes;
	FILE *stream; /* writes text */
};

static void print_help_line(void *context, const char *line)
{
	bool is_option = !strncmp(line, "  ", 2) && line[2] != ' ';

	(void)context;
	if (!strncmp(line, "  help=", 7))
		line = "  help                     this text";
	printf("%s%s\n", is_option ? "--" : "", is_option ? line + 2 : line);
}

static int print_help(void)
{
	puts("usage: leakwatch [--OPTION[=VALUE]]... [--] PROGRAM [ARGUMENTS]...\n"
	     "\n"
	     "Runs PROGRAM and reports what it never freed, with the stack of each allocation.\n"
	     "Nothing has to be rebuilt; debug information (-g) gives files and lines.\n"
	     "\n"
	     "Options (also in LEAKWATCH_OPTIONS, as name=value:name=value; --no-NAME is 0\n"
	     "where 0 and 1 are the values):\n");
	lw_options_help(print_help_line, NULL);
	puts("--version                  version\n"
	     "\n"
	     "Status: that of PROGRAM; 2 usage error, 125 LeakWatch itself failed, 126 PROGRAM\n"
	     "cannot be run, 127 it was not found.");
	return fflush(stdout) ? 1 : 0;
}

/* A complaint names the value kept, which means nothing here: the program is not run. */
static void refuse_setting(void *context, const char *line)
{
	const char *what = strstr(line, context), *end = what;

	for (const char *p = what; (p = strstr(p, ", using ")); p++)
		end = p;
	fail(STATUS_USAGE, "--%.*s (try --help)",
		(int)(end > what ? (size_t)(end - what) : strlen(what)), what);
}

/* name=value, quoted so that any value passes. */
static void add_setting(struct settings *settings, const char *name, const char *value)
{
	bool is_plain = !value[strcspn(value, ": \t\r\n")] && *value != '"' && *value != '\'';

	fprintf(settings->stream, ":%s=%s", name, is_plain ? value : "'");
	if (is_plain)
		return;
	for (; *value; value++)
		fputs(*value == '\'' ? "'\"'\"'" : (char[]){*value, '\0'}, settings->stream);
	fputc('\'', settings->stream);
}

static const struct lw_option_spec *find_option(const char *name)
{
	size_t nr_options;
	const struct lw_option_spec *table = lw_options_table(&nr_options);

	for (size_t i = 0; i < nr_options; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

/* One --name[=value]; next is the argument behind it or NULL. True: next was the value. */
static bool take_option(struct settings *settings, const char *argument, const char *next)
{
	const char *equals = strchrnul(argument, '='), *value = *equals ? equals + 1 : NULL;
	char name[64];
	const struct lw_option_spec *spec;
	bool is_next = false;

	snprintf(name, sizeof(name), "%.*s", (int)(equals - argument), argument);
	for (char *p = name; *p; p++)
		if (*p == '-')
			*p = '_';
	spec = find_option(name);
	if (!spec && !value && !strncmp(name, "no_", 3)) {
		spec = find_option(name + 3);
		if (spec && spec->type != LW_OPTION_BOOL)
			fail(STATUS_USAGE, "'--%s': %s is no switch of 0 and 1 (try --help)",
				argument, spec->name);
		value = "0";
	}
	if (!spec)
		fail(STATUS_USAGE, "unknown option '--%s' (try --help)", argument);
	if (!value && spec->type == LW_OPTION_BOOL)
		value = "1";
	if (!value) {
		if (!next)
			fail(STATUS_USAGE, "option '--%s' needs a value (try --help)", argument);
		value = next;
		is_next = true;
	}
	lw_options_set(&settings->checked, spec->name, value, "command line", refuse_setting,
		(void *)(uintptr_t)spec->name);
	add_setting(settings, spec->name, value);
	return is_next;
}

/* Index of PROGRAM in argv. */
static int parse_command_line(struct settings *settings, char **argv)
{
	int i = 1;

	for (; argv[i] && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--help"))
			exit(print_help());
		if (!strcmp(argv[i], "--version"))
			exit(puts("leakwatch " LW_VERSION) < 0 || fflush(stdout));
		if (argv[i][1] != '-')
			fail(STATUS_USAGE, "unknown option '%s' (try --help)", argv[i]);
		if (take_option(settings, argv[i] + 2, argv[i + 1]))
			i++;
	}
	if (!argv[i])
		fail(STATUS_USAGE, "no program to run (try --help)");
	return i;
}

/* Is it a file that may be run? 0 or errno. */
static int check_runnable(const char *path)
{
	struct stat file;

	if (stat(path, &file))
		return errno;
	if (S_ISDIR(file.st_mode))
		return EISDIR;
	if (!S_ISREG(file.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

/* Looks for program as execvp() does. 0 and *path, or errno. */
static int find_program(const char *program, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	int worst = ENOENT, error;

	if (strlen(program) >= PATH_MAX)
		return ENAMETOOLONG;
	if (strchr(program, '/') || !*program) {
		strcpy(path, program);
		return check_runnable(path);
	}
	for (folders = folders ? folders : "/bin:/usr/bin";; folders++) {
		size_t n = strcspn(folders, ":");

		if (n + strlen(program) + 2 <= PATH_MAX) {
			snprintf(
				path, PATH_MAX, "%.*s%s%s", (int)n, folders, n ? "/" : "", program);
			error = check_runnable(path);
			if (!error)
				return 0;
			if (error != ENOENT && error != ENOTDIR)
				worst = EACCES;
		}
		folders += n;
		if (!*folders)
			return worst;
	}
}

/* The first match of pattern that is a library for this processor, absolute; else NULL. */
static char *find_library_at(const char *folder, const char *pattern)
{
	char *whole, *found = NULL;
	glob_t matches;

	if (asprintf(&whole, "%s/%s/" LIBRARY, folder, pattern) < 0)
		return NULL;
	if (!glob(whole, 0, NULL, &matches)) {
		for (size_t i = 0; i < matches.gl_pathc && !found; i++)
			if (lw_inspect_is_our_kind(matches.gl_pathv[i]))
				found = realpath(matches.gl_pathv[i], NULL);
		globfree(&matches);
	}
	free(whole);
	return found;
}

static char *find_library(void)
{
	static const char *const places[] = {
		"../lib*/leakwatch", "../lib/*/leakwatch", ".", "../preload"};
	char folder[PATH_MAX], *found = NULL;

	if (lw_inspect_own_path(folder)) {
		*strrchr(folder, '/') = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++)
			found = find_library_at(folder, places[i]);
	}
#ifdef LW_LIBDIR
	if (!found)
		found = find_library_at(LW_LIBDIR, ".");
#endif
	if (!found)
		fail(STATUS_OWN_FAILURE,
			LIBRARY " is neither installed with nor built beside this program");
	if (found[strcspn(found, ": \t\n")])
		fail(STATUS_OWN_FAILURE, "cannot preload '%s': a blank or colon in its path",
			found);
	return found;
}

static void set_variable(const char *name, const char *value)
{
	if (setenv(name, value, 1))
		fail(STATUS_OWN_FAILURE, "cannot set %s: %s", name, strerror(errno));
}

static void set_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char *library = find_library(), *whole;
	size_t nr_bytes = strlen(library);

	/* under another leakwatch it is there already, first */
	if (old && !strncmp(old, library, nr_bytes) && strchr(": ", old[nr_bytes]))
		return;
	if (asprintf(&whole, "%s%s%s", library, old && *old ? ":" : "", old ? old : "") < 0)
		fail(STATUS_OWN_FAILURE, "%s", strerror(ENOMEM));
	set_variable("LD_PRELOAD", whole);
	free(whole);
	free(library);
}

/* A quote left open in the existing text would swallow ours: then ours go first. */
static bool is_open_ended(const char *text)
{
	struct lw_options options;
	char *probe;

	lw_options_init(&options);
	if (asprintf(&probe, "%s:top=1:top=2", text) < 0)
		return false;
	lw_options_parse(&options, probe, "", NULL, NULL);
	free(probe);
	return options.top != 2;
}

static void set_options(const char *added)
{
	const char *old = getenv(OPTIONS_VARIABLE);
	char *whole;
	int n;

	if (!*added)
		return;
	if (!old || !*old)
		n = asprintf(&whole, "%s", added + 1);
	else if (is_open_ended(old))
		n = asprintf(&whole, "%s:%s", added + 1, old);
	else
		n = asprintf(&whole, "%s%s", old, added);
	if (n < 0)
		fail(STATUS_OWN_FAILURE, "%s", strerror(ENOMEM));
	set_variable(OPTIONS_VARIABLE, whole);
	free(whole);
}

/* A format the kernel does not know: a script without "#!" goes to the shell, as by execvp(). */
static void run_by_shell(char *path, char **argv)
{
	char line[LW_INSPECT_LINE_BYTES], **shell_argv;
	size_t nr_bytes, nr_args = 0;

	if (!lw_inspect_first_line(path, line, &nr_bytes) || memchr(line, '\0', nr_bytes) ||
		!strncmp(line, ELFMAG, SELFMAG))
		fail(STATUS_CANNOT_RUN, "cannot run '%s': not a program", argv[0]);
	while (argv[nr_args])
		nr_args++;
	shell_argv = calloc(nr_args + 2, sizeof(*shell_argv));
	if (!shell_argv)
		fail(STATUS_OWN_FAILURE, "%s", strerror(ENOMEM));
	shell_argv[0] = (char[]){"/bin/sh"};
	shell_argv[1] = path;
	memcpy(shell_argv + 2, argv + 1, nr_args * sizeof(*argv)); /* with the NULL */
	execv(shell_argv[0], shell_argv);
	fail(STATUS_CANNOT_RUN, "cannot run /bin/sh: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct settings settings = {0};
	char path[PATH_MAX];
	enum lw_inspect_sight sight;
	int error;

	(void)argc;
	settings.stream = open_memstream(&settings.text, &settings.text_bytes);
	if (!settings.stream)
		fail(STATUS_OWN_FAILURE, "%s", strerror(errno));
	lw_options_init(&settings.checked);
	argv += parse_command_line(&settings, argv);
	fclose(settings.stream);

	error = find_program(argv[0], path);
	if (error)
		fail(error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN, "cannot run '%s': %s",
			argv[0], strerror(error));
	sight = lw_inspect(path);
	if (sight == LW_INSPECT_WATCHABLE) {
		set_preload();
		set_options(settings.text);
	} else {
		fputs("leakwatch: ", stderr);
		fprintf(stderr, lw_inspect_why_not(sight), argv[0]); /* one %s each */
		fputc('\n', stderr);
	}
	if (settings.checked.stay)
		lw_stay();
	execv(path, argv);
	if (errno == ENOEXEC)
		run_by_shell(path, argv);
	error = errno;
	fail(error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN, "cannot run '%s': %s%s",
		argv[0], strerror(error), error == ENOENT ? " (the interpreter it asks for)" : "");
}
