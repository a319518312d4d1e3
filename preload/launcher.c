/* SPDX-License-Identifier: MIT */
/*
 * launcher.c - `leakwatch [--option[=value]]... [--] PROGRAM [ARGS...]`: sets LD_PRELOAD and
 * LEAKWATCH_OPTIONS, then becomes the program.
 *
 * The long options are the rows of the option table and nothing else, so that what the environment
 * takes and what the command line takes never differ. A bad one is an error here (status 2), since
 * somebody just typed it; in the environment it costs a line.
 *
 * The program is looked at before it is run, because the loader ignores LD_PRELOAD in silence where
 * it cannot work (static, setuid) or complains in its own words (another ELF class), and a
 * sanitized program would abort. In these cases one line says so and the program runs as if we were
 * not there. What is read from the file is believed by nobody: each offset and count is bounded,
 * and what cannot be read or understood is left for execve() to judge. Statuses are those of
 * env(1).
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
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/share/options.h"

enum {
	STATUS_USAGE = 2,
	STATUS_OWN_FAILURE = 125,
	STATUS_CANNOT_RUN = 126,
	STATUS_NOT_FOUND = 127,
	MAX_SEGMENTS = 512,
	MAX_DYNAMIC = 4096,	    /* entries */
	MAX_NAMES_BYTES = 64 << 20, /* .dynstr; beyond it no sanitizer is looked for */
	FIRST_LINE_BYTES = 256,	    /* of a script, as the kernel reads it */
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
	     "Options (also in LEAKWATCH_OPTIONS, as name=value:name=value; --no-NAME is 0):\n");
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
			spec = NULL;
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

/* ---- what kind of file ---- */

enum sight { CAN_WATCH, IS_STATIC, IS_PRIVILEGED, IS_FOREIGN, IS_ASAN };

static const char *const why_not[] = {
	[IS_STATIC] = "cannot see into '%s': it is linked statically; running it unwatched",
	[IS_PRIVILEGED] = "cannot see into '%s': it is setuid, setgid or has file capabilities; "
			  "running it unwatched",
	[IS_FOREIGN] =
		"cannot see into '%s': it is built for another processor; running it unwatched",
	[IS_ASAN] =
		"steps aside: '%s' is built with AddressSanitizer, which looks for leaks itself",
};

static bool read_at(int fd, void *out, size_t nr_bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, out, nr_bytes, (off_t)offset) == (ssize_t)nr_bytes;
}

static bool read_ident(const char *path, Elf64_Ehdr *header)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_elf;

	if (fd < 0)
		return false;
	memset(header, 0, sizeof(*header));
	/* up to e_machine a header is the same in all classes; shorter files are no programs */
	is_elf = read_at(fd, header, offsetof(Elf64_Ehdr, e_version), 0) &&
		 !memcmp(header->e_ident, ELFMAG, SELFMAG);
	close(fd);
	return is_elf;
}

/* Built for what this launcher is built for, and so the library beside it. */
static bool is_our_kind(const Elf64_Ehdr *header)
{
	Elf64_Ehdr own;

	return !read_ident("/proc/self/exe", &own) ||
	       (header->e_machine == own.e_machine &&
		       !memcmp(header->e_ident, own.e_ident, EI_VERSION));
}

/* File offset of an address, by the loadable segments; false if it lies in none. */
static bool find_offset(const Elf64_Phdr *segments, unsigned nr, uint64_t address, uint64_t *offset)
{
	for (unsigned i = 0; i < nr; i++) {
		if (segments[i].p_type != PT_LOAD ||
			address - segments[i].p_vaddr >= segments[i].p_filesz)
			continue;
		*offset = segments[i].p_offset + (address - segments[i].p_vaddr);
		return true;
	}
	return false;
}

/*
 * The names of needed libraries and of imported and exported symbols all lie in .dynstr, each
 * between two NULs. So one search there finds a linked libasan and a static one alike.
 */
static bool names_asan(int fd, uint64_t offset, size_t nr_bytes)
{
	static const char init[] = "\0__asan_init", gcc[] = "\0libasan.so",
			  clang[] = "\0libclang_rt.asan";
	char *names = nr_bytes && nr_bytes <= MAX_NAMES_BYTES ? malloc(nr_bytes) : NULL;
	bool is_found = false;

	if (names && read_at(fd, names, nr_bytes, offset))
		is_found = memmem(names, nr_bytes, init, sizeof(init)) ||
			   memmem(names, nr_bytes, gcc, sizeof(gcc) - 1) ||
			   memmem(names, nr_bytes, clang, sizeof(clang) - 1);
	free(names);
	return is_found;
}

static bool has_asan(int fd, const Elf64_Phdr *segments, unsigned nr, const Elf64_Phdr *dynamic)
{
	uint64_t nr_entries = dynamic->p_filesz / sizeof(Elf64_Dyn), names = 0, nr_bytes = 0,
		 offset;
	Elf64_Dyn entry;

	if (nr_entries > MAX_DYNAMIC)
		nr_entries = MAX_DYNAMIC;
	for (uint64_t i = 0; i < nr_entries; i++) {
		if (!read_at(fd, &entry, sizeof(entry), dynamic->p_offset + i * sizeof(entry)) ||
			entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			names = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			nr_bytes = entry.d_un.d_val;
	}
	return find_offset(segments, nr, names, &offset) && names_asan(fd, offset, nr_bytes);
}

/* fd is an ELF file of our kind. */
static enum sight inspect_segments(int fd)
{
	static Elf64_Phdr segments[MAX_SEGMENTS];
	const Elf64_Phdr *dynamic = NULL;
	bool has_interpreter = false;
	Elf64_Ehdr header;

	if (!read_at(fd, &header, sizeof(header), 0) || header.e_phentsize != sizeof(*segments) ||
		header.e_phnum > MAX_SEGMENTS ||
		!read_at(fd, segments, header.e_phnum * sizeof(*segments), header.e_phoff))
		return CAN_WATCH;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		has_interpreter |= segments[i].p_type == PT_INTERP;
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = &segments[i];
	}
	if (!has_interpreter)
		return IS_STATIC;
	return dynamic && has_asan(fd, segments, header.e_phnum, dynamic) ? IS_ASAN : CAN_WATCH;
}

/* Does the kernel start it in secure mode for this user? Root gains nothing by setuid root. */
static bool is_privileged(const char *path)
{
	struct stat file;

	if (stat(path, &file))
		return false;
	if ((file.st_mode & S_ISUID && file.st_uid != getuid()) ||
		((file.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
			file.st_gid != getgid()))
		return true;
	return getuid() && getxattr(path, "security.capability", NULL, 0) > 0;
}

static enum sight inspect_elf(const char *path, const Elf64_Ehdr *header)
{
	enum sight sight;
	int fd;

	if (!is_our_kind(header))
		return IS_FOREIGN;
	if (is_privileged(path))
		return IS_PRIVILEGED;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CAN_WATCH;
	sight = inspect_segments(fd);
	close(fd);
	return sight;
}

/* The first line of the file, without newline; false if it cannot be read. */
static bool read_first_line(const char *path, char line[FIRST_LINE_BYTES], size_t *nr_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, line, FIRST_LINE_BYTES - 1, 0);
	char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;

	if (fd >= 0)
		close(fd);
	*nr_bytes = end ? (size_t)(end - line) : n > 0 ? (size_t)n : 0;
	line[*nr_bytes] = '\0';
	return n >= 0;
}

/* A script is as visible as what runs it; one level, since that is all the checks need. */
static enum sight inspect(const char *path)
{
	char line[FIRST_LINE_BYTES];
	Elf64_Ehdr header;
	size_t nr_bytes;
	char *name;

	if (read_ident(path, &header))
		return inspect_elf(path, &header);
	if (!read_first_line(path, line, &nr_bytes) || strncmp(line, "#!", 2))
		return is_privileged(path) ? IS_PRIVILEGED : CAN_WATCH;
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t")] = '\0';
	return read_ident(name, &header) ? inspect_elf(name, &header) : CAN_WATCH;
}

/* ---- finding and running ---- */

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
	Elf64_Ehdr header;
	glob_t matches;

	if (asprintf(&whole, "%s/%s/" LIBRARY, folder, pattern) < 0)
		return NULL;
	if (!glob(whole, 0, NULL, &matches)) {
		for (size_t i = 0; i < matches.gl_pathc && !found; i++)
			if (read_ident(matches.gl_pathv[i], &header) && is_our_kind(&header))
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
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (n > 0) {
		folder[n] = '\0';
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
	char line[FIRST_LINE_BYTES], **shell_argv;
	size_t nr_bytes, nr_args = 0;

	if (!read_first_line(path, line, &nr_bytes) || memchr(line, '\0', nr_bytes) ||
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
	enum sight sight;
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
	sight = inspect(path);
	if (sight == CAN_WATCH) {
		set_preload();
		set_options(settings.text);
	} else {
		fputs("leakwatch: ", stderr);
		fprintf(stderr, why_not[sight], argv[0]);
		fputc('\n', stderr);
	}
	execv(path, argv);
	if (errno == ENOEXEC)
		run_by_shell(path, argv);
	error = errno;
	fail(error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN, "cannot run '%s': %s%s",
		argv[0], strerror(error), error == ENOENT ? " (the interpreter it asks for)" : "");
}
