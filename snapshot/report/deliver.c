/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - the reports of an ended process, put where its options say.
 *
 * Everything for stderr (complaints, and the text when it has no file or its file cannot be
 * written) is gathered first and written at once, so that it stands together and the patience of
 * output_shared() is spent once. The descriptor is used only while it is still the file it was when
 * the target started: a daemon may have put a socket or a database there since. A file that cannot
 * be written costs one line, and the report is not lost for it.
 */
#include "snapshot/report/deliver.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/alloc.h"
#include "snapshot/report/output.h"

enum { PATH_BYTES = 4096, MAX_COUNTER = 10000 };

static bool is_voice(const struct model *model)
{
	return model->hello.flags & (LW_REGION_ROOT | LW_REGION_WATCHED);
}

/* Has this process a file of its own, or is it the one that may use a name without %p? */
static bool may_write(const struct model *model, const char *template_text)
{
	return *template_text && (is_voice(model) || lw_options_has_pid(template_text));
}

bool deliver_is_needed(const struct model *model, const struct lw_options *options)
{
	return is_voice(model) || may_write(model, options->json) ||
	       may_write(model, options->log_path);
}

bool deliver_has_color(const struct lw_options *options, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (options->color != LW_COLOR_AUTO)
		return options->color == LW_COLOR_ALWAYS;
	return !(no_color && *no_color) && !(term && !strcmp(term, "dumb")) && isatty(fd);
}

static bool is_taken(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0;
}

/* The file a template stands for; where %n stands in it, one that is not there yet. */
static bool expand(const struct model *model, const char *template_text, char out[PATH_BYTES])
{
	const char *exe = model_text(model, LW_TEXT_EXE), *slash = strrchr(exe, '/');
	struct lw_options_names names = {.pid = model->hello.pid,
		.program = slash ? slash + 1 : exe,
		.time_s = (uint64_t)time(NULL)};
	char host[256] = "", first[PATH_BYTES];

	(void)gethostname(host, sizeof(host) - 1);
	names.host = host;
	if (!lw_options_expand(first, sizeof(first), template_text, &names))
		return false;
	for (names.counter = 0; names.counter < MAX_COUNTER; names.counter++) {
		if (!lw_options_expand(out, PATH_BYTES, template_text, &names))
			return false;
		if (!is_taken(out) || (names.counter == 1 && !strcmp(first, out)))
			return true;
	}
	return true;
}

static bool is_same_file(const char *path, const char *other)
{
	struct stat a, b;

	return !strcmp(path, other) ||
	       (!stat(path, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* Two reports in one file would be neither: the text goes beside the JSON, which programs look for. */
static bool avoid(char path[PATH_BYTES], const char *taken, FILE *complaints)
{
	static const char ending[] = ".txt";
	size_t nr = strlen(path);

	if (!*taken || !is_same_file(path, taken))
		return true;
	if (nr + sizeof(ending) > PATH_BYTES)
		return false;
	memcpy(path + nr, ending, sizeof(ending));
	fprintf(complaints, "leakwatch: json and log_path are the same file: the text is in %s\n", path);
	return true;
}

/* False: it could not be written, and *complaints says so. taken: see avoid(); written: room for the name, or NULL. */
static bool write_file(const struct model *model, const char *template_text, enum output_way way,
	const char *text, size_t nr_bytes, FILE *complaints, const char *taken, char *written)
{
	char path[PATH_BYTES];
	int err = -ENAMETOOLONG;

	if (expand(model, template_text, path) && avoid(path, taken, complaints))
		err = output_file(path, way, text, nr_bytes);
	if (written && !err)
		memcpy(written, path, strlen(path) + 1);
	if (err)
		fprintf(complaints, "leakwatch: cannot write %s: %s\n",
			err == -ENAMETOOLONG ? template_text : path, output_error(err));
	return !err;
}

static void write_json(struct report *report, FILE *complaints, char written[PATH_BYTES])
{
	const char *template_text = report->options->json;
	char *text = NULL;
	size_t nr_bytes = 0;
	FILE *memory;

	if (!may_write(report->model, template_text))
		return;
	memory = alloc_check(open_memstream(&text, &nr_bytes));
	if (!report_json(report, memory) || fclose(memory))
		fputs("leakwatch: no memory for the JSON report\n", complaints);
	else
		(void)write_file(report->model, template_text, OUTPUT_REPLACE, text, nr_bytes, complaints, "",
			written);
	free(text);
}

/* To its file; false: it belongs on stderr. */
static bool write_log(struct report *report, FILE *complaints, const char *taken)
{
	const char *template_text = report->options->log_path;
	char *text = NULL;
	size_t nr_bytes = 0;
	FILE *memory;
	bool is_written;

	if (!*template_text)
		return false;
	if (!may_write(report->model, template_text))
		return true;
	memory = alloc_check(open_memstream(&text, &nr_bytes));
	report_text(report, memory, report->options->color == LW_COLOR_ALWAYS);
	(void)fclose(memory);
	is_written = write_file(
		report->model, template_text, OUTPUT_IN_PLACE, text, nr_bytes, complaints, taken, NULL);
	free(text);
	return is_written;
}

static bool has_text(const struct report *report)
{
	uint32_t when = report->options->report;

	return when == LW_REPORT_ALWAYS || (when == LW_REPORT_AUTO && report_has_news(report));
}

/* To the target's stderr, if it is one that may speak there and it is still the same file. */
static void say(const struct model *model, int stderr_fd, const char *text, size_t nr_bytes)
{
	const struct lw_wire_hello *hello = &model->hello;

	if (nr_bytes && is_voice(model) && (hello->flags & LW_REGION_STDERR_OPEN) &&
		output_is_file(stderr_fd, hello->stderr_dev, hello->stderr_ino))
		(void)output_shared(stderr_fd, text, nr_bytes);
}

void deliver_reports(struct report *report, const char *complaints, int stderr_fd)
{
	char *text = NULL, json[PATH_BYTES] = "";
	size_t nr_bytes = 0;
	FILE *to_stderr = alloc_check(open_memstream(&text, &nr_bytes));

	fputs(complaints, to_stderr);
	write_json(report, to_stderr, json);
	if (has_text(report) && !write_log(report, to_stderr, json) && is_voice(report->model))
		report_text(report, to_stderr, deliver_has_color(report->options, stderr_fd));
	(void)fclose(to_stderr);
	say(report->model, stderr_fd, text, nr_bytes);
	free(text);
}

/* A name that is another at every report is no place for what belongs to one of them. */
static bool is_lasting(const char *template_text)
{
	return !strstr(template_text, "%n") && !strstr(template_text, "%t");
}

void deliver_event(struct report *report, size_t index, int stderr_fd)
{
	const char *log_path = report->options->log_path;
	bool is_logged = *log_path && is_lasting(log_path) && may_write(report->model, log_path);
	char *text = NULL;
	size_t nr_bytes = 0;
	FILE *memory = alloc_check(open_memstream(&text, &nr_bytes)), *complaints;
	bool has_color = !is_logged && deliver_has_color(report->options, stderr_fd);

	if (report->options->report == LW_REPORT_NEVER) {
		(void)fclose(memory);
		free(text);
		return;
	}
	report_text_event(report, index, memory, has_color);
	(void)fclose(memory);
	complaints = alloc_check(fopen("/dev/null", "we")); /* the report of the end names them */
	if (!is_logged ||
		!write_file(report->model, log_path, OUTPUT_APPEND, text, nr_bytes, complaints, "", NULL))
		say(report->model, stderr_fd, text, nr_bytes);
	(void)fclose(complaints);
	free(text);
}
