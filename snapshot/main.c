/* SPDX-License-Identifier: MIT */
/*
 * main.c - leakwatch-snapshot: reads what a watched process wrote down, and says what it means.
 *
 * Two ways in. A person asks about a running process, or about a file of records, and gets the
 * answer on stdout. An ending target (or the cleaner after a kill) calls it with --report, and it
 * writes the reports where that process's own options say, then answers through --done-fd. Both
 * go the same way: source -> decode -> model -> judge -> outputs.
 *
 * SIGPIPE and SIGXFSZ are ignored: a reader that went away or a limit that is reached is an error
 * of one output, not an end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/share/report.h"
#include "snapshot/alloc.h"
#include "snapshot/command.h"
#include "snapshot/model/decode.h"
#include "snapshot/model/past.h"
#include "snapshot/model/state.h"
#include "snapshot/report/deliver.h"
#include "snapshot/report/format.h"
#include "snapshot/model/verdict.h"
#include "snapshot/report/output.h"
#include "snapshot/source/memory.h"
#include "snapshot/source/source.h"
#include "snapshot/view/view.h"

enum { STATUS_NOT_SEARCHED = 3 }; /* 1: something is lost */

static int status_of_failure = 1;
static const char *own_name = "leakwatch-snapshot"; /* of a report at the end of a program: as the library calls itself */

__attribute__((noreturn)) static void fail(const char *why)
{
	(void)fprintf(stderr, "leakwatch-snapshot: %s\n", why);
	exit(status_of_failure);
}

/* ---- reading ---- */

static bool read_file(const char *name, struct decode *decode, struct source_error *error)
{
	bool is_stdin = !strcmp(name, "-");
	int fd = is_stdin ? 0 : open(name, O_RDONLY | O_CLOEXEC);
	bool is_read;

	if (fd < 0) {
		(void)snprintf(error->text, sizeof(error->text), "cannot read %s: %s", name,
			strerror(errno));
		return false;
	}
	if (source_is_boxfile(fd))
		is_read = source_boxfile(fd, name, decode_record, decode, error);
	else
		is_read = source_stream(
			fd, is_stdin ? "stdin" : name, past_record, decode, error);
	if (!is_stdin)
		close(fd);
	return is_read;
}

/* The model, finished; a message and the end of the program if there is none. */
static struct model *read_model(const struct command *command)
{
	struct decode decode = {.model = model_new()};
	struct source_error error = {""};
	bool is_read;

	if (command->shmid >= 0)
		is_read = source_shmid(command->shmid, decode_record, &decode, &error);
	else if (command_is_number(command->what))
		is_read = source_pid((pid_t)command_int("once", command->what), decode_record,
			&decode, &error);
	else
		is_read = read_file(command->what, &decode, &error);
	if (!is_read && decode.why[0])
		(void)snprintf(error.text, sizeof(error.text), "cannot read %s: %s",
			command->what ? command->what : "the region", decode.why);
	if (!decode.model->has_hello && is_read)
		(void)snprintf(error.text, sizeof(error.text), "cannot read %s: %s",
			command->what ? command->what : "the region", decode_missing(decode.model));
	/* what came before the damage is still worth a report */
	if (!decode.model->has_hello || decode.why[0])
		fail(error.text);
	if (!is_read)
		(void)fprintf(stderr, "leakwatch-snapshot: %s\n", error.text);
	decode.model->is_cut = error.is_cut;
	model_finish(decode.model);
	return decode.model;
}

/* ---- judging ---- */

/* Its frames are not shown unless full_stacks asks for them. */
static bool is_library_of_the_system(const char *path)
{
	return verdict_owner(path) != VERDICT_USER;
}

static void read_options(
	const struct command *command, const struct model *model, struct lw_options *options)
{
	lw_options_init(options);
	/* the target has complained about them already */
	lw_options_parse(options, model_text(model, LW_TEXT_OPTIONS), "options", NULL, NULL);
	for (size_t i = 0; i < command->nr_settings; i++)
		(void)lw_options_set(options, command->settings[i].key, command->settings[i].value,
			"command line", NULL, NULL);
}

static void complain_of_lines(FILE *complaints, const char *name, size_t nr_bad, size_t first_bad)
{
	if (nr_bad == 1)
		fprintf(complaints, "%s: %s: line %zu is no `leak:PATTERN`, ignored\n", own_name, name,
			first_bad);
	else if (nr_bad)
		fprintf(complaints,
			"%s: %s: line %zu and %zu more are no `leak:PATTERN`, ignored\n",
			own_name, name, first_bad, nr_bad - 1);
}

static void read_suppressions(struct suppress *suppress, const struct model *model,
	const struct lw_options *options, FILE *complaints)
{
	const char *own = model_text(model, LW_TEXT_SUPPRESSIONS);
	size_t nr_bad = 0, first_bad = 0;
	int err;

	nr_bad = suppress_parse(suppress, own, strlen(own), &first_bad);
	complain_of_lines(complaints, "the program's own suppressions", nr_bad, first_bad);
	if (!*options->suppressions)
		return;
	err = suppress_read(suppress, options->suppressions, &nr_bad, &first_bad);
	if (options->verbose)
		fprintf(complaints, "%s: suppressions: %zu rules, with those of %s\n", own_name,
			suppress->nr_rules, options->suppressions);
	if (err)
		fprintf(complaints, "%s: cannot read suppressions %s: %s\n", own_name,
			options->suppressions, strerror(-err));
	else
		complain_of_lines(complaints, options->suppressions, nr_bad, first_bad);
}

/* Where the files of a live process are, when it does not see the same ones as we:
 * "/proc/PID/root". */
static const char *root_of(int pid, const char *state, char out[32])
{
	struct stat own, its;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (strcmp(state, "live") || stat("/proc/self/ns/mnt", &own) < 0 || stat(path, &its) < 0)
		return "";
	(void)snprintf(out, 32, "/proc/%d/root", pid);
	if (own.st_ino != its.st_ino)
		return out;
	return stat("/", &own) == 0 && stat(out, &its) == 0 && own.st_ino != its.st_ino ? out : "";
}

/* Its number here: in its own pid namespace, which the records name, it may have another. */
static int pid_of(const struct command *command, const struct model *model)
{
	if (command->what && command_is_number(command->what))
		return command_int("once", command->what);
	return model ? model->hello.pid : 0;
}

/* ---- the things it does ---- */

static bool is_box(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool is_it = fd >= 0 && source_is_boxfile(fd);

	if (fd >= 0)
		close(fd);
	return is_it;
}

/* Columns, JSON or records of a watch, or (is_screen) the screen; -1: it wants a report instead. */
static int run_watch(const struct command *command, bool is_screen)
{
	struct suppress suppress = {0};
	struct lw_options options;
	struct view_settings settings = {.what = command->what,
		.is_pid = command_is_number(command->what),
		.is_json = command->has_json,
		.has_exact = command->has_exact,
		.interval_ms = command->interval_ms,
		.nr_ticks = command->nr_ticks,
		.top = 20,
		.save = command->save,
		.options = &options,
		.suppress = &suppress};
	char root[32];
	int status;

	if ((command->has_interval || command->has_count) && !settings.is_pid && is_box(command->what))
		(void)fprintf(stderr, "leakwatch-snapshot: %s is a black box, which has one state only; --once reports it\n",
			command->what);
	lw_options_init(&options);
	for (size_t i = 0; i < command->nr_settings; i++) {
		(void)lw_options_set(&options, command->settings[i].key, command->settings[i].value,
			"command line", NULL, NULL);
		if (!strcmp(command->settings[i].key, "top"))
			settings.top = options.top;
	}
	if (*options.suppressions) {
		size_t nr_bad = 0, first_bad = 0;
		int err = suppress_read(&suppress, options.suppressions, &nr_bad, &first_bad);

		if (err)
			fprintf(stderr, "leakwatch-snapshot: cannot read suppressions %s: %s\n",
				options.suppressions, strerror(-err));
		else
			complain_of_lines(stderr, options.suppressions, nr_bad, first_bad);
	}
	settings.symbols = alloc_check(
		symbols_new(settings.is_pid ? root_of(pid_of(command, NULL), "live", root) : ""));
	if (!options.full_stacks)
		symbols_skip_debug(settings.symbols, is_library_of_the_system);
	status = is_screen ? view_screen(&settings) : view_plain(&settings);
	return status;
}

static void say_done(const struct command *command, const struct report *report)
{
	struct lw_report_done done = {
		.magic = LW_REPORT_DONE_MAGIC,
		.leaked_bytes = report->leaked.bytes,
		.leaked_blocks = report->leaked.blocks,
		.nr_mismatches = report->nr_mismatches + report->nr_errors,
	};

	if (command->done_fd < 0)
		return;
	while (write(command->done_fd, &done, sizeof(done)) < 0 && errno == EINTR)
		;
}

static int print_report(
	const struct command *command, struct report *report, const char *complaints)
{
	char *json = NULL;
	size_t nr_bytes = 0;
	int err = 0;

	fputs(complaints, stderr);
	if (command->has_json && !command->json) {
		(void)report_json(report, stdout);
	} else if (command->has_json) {
		FILE *memory = alloc_check(open_memstream(&json, &nr_bytes));

		(void)report_json(report, memory);
		(void)fclose(memory);
		err = output_file(command->json, OUTPUT_REPLACE, json, nr_bytes);
		free(json);
	}
	if (err)
		(void)fprintf(stderr, "leakwatch-snapshot: cannot write %s: %s\n", command->json,
			output_error(err));
	if (!command->has_json || command->json)
		report_text(report, stdout, deliver_has_color(report->options, 1));
	if (fflush(stdout) || ferror(stdout)) {
		if (errno == EPIPE)
			exit(1); /* piped into head, which has seen enough */
		fail("cannot write to stdout");
	}
	return err ? 1 : 0;
}

/* What it cannot answer is said, and the report is of its last answer. */
static bool ask_for_leaks(const struct command *command)
{
	struct source_error error = {""};

	if (source_ask_scan((pid_t)command_int("leaks", command->what), &error))
		return true;
	(void)fprintf(stderr, "leakwatch-snapshot: %s\n", error.text);
	return false;
}

/* Once it is written nobody else is to report, though the target be killed before it says so itself. */
static void report_and_mark(
	const struct command *command, struct report *report, const char *complaints)
{
	deliver_reports(report, complaints, command->stderr_fd);
	if (command->shmid >= 0)
		lw_region_set_reported(command->shmid);
}

static int run_report(const struct command *command)
{
	struct lw_options options;
	struct suppress suppress = {0};
	struct report report = {.suppress = &suppress,
		.options = &options,
		.began_ns = report_now_ns(),
		.signal = command->signal};
	char root[32], *complaints = NULL;
	size_t nr_bytes;
	FILE *memory = alloc_check(open_memstream(&complaints, &nr_bytes));
	bool is_searched;
	int status = 0;

	if (command->has_leaks)
		status_of_failure = STATUS_NOT_SEARCHED;
	is_searched = !command->has_leaks || ask_for_leaks(command);
	report.model = read_model(command);
	report.state = command->state ? command->state : state_name(report.model);
	report.missing = decode_missing(report.model);
	read_options(command, report.model, &options);
	if (command->event >= 0) {
		report.symbols =
			alloc_check(symbols_new(root_of(pid_of(command, report.model), report.state, root)));
		if (report_judge_event(&report, (size_t)command->event))
			deliver_event(&report, (size_t)command->event, command->stderr_fd);
		say_done(command, &report);
	} else if (!command->is_report || deliver_is_needed(report.model, &options) ||
		command->done_fd >= 0) {
		read_suppressions(&suppress, report.model, &options, memory);
		(void)fclose(memory);
		report.symbols =
			alloc_check(symbols_new(root_of(pid_of(command, report.model), report.state, root)));
		if (!options.full_stacks)
			symbols_skip_debug(report.symbols, is_library_of_the_system);
		if (strcmp(report.state, "killed")) /* it is there, and its limits are */
			report.left_bytes = memory_left_bytes(pid_of(command, report.model));
		else
			report.left_bytes = memory_left_bytes(0);
		report_judge(&report);
		if (command->is_report)
			report_and_mark(command, &report, complaints);
		else
			status = print_report(command, &report, complaints);
		if (!is_searched)
			status = STATUS_NOT_SEARCHED; /* what an earlier search found is in the report */
		else if (command->has_leaks && report.lost.blocks)
			status = 1;
		say_done(command, &report);
	} else if (command->shmid >= 0) {
		lw_region_set_reported(command->shmid); /* nothing is asked for: that is done */
	}
	/* the end of the process frees the rest faster than we could */
	report_fini(&report);
	return status;
}

static bool keep_record(void *file, const struct lw_wire_head *record)
{
	return fwrite(record, record->bytes, 1, file) == 1;
}

static int run_save(const struct command *command)
{
	struct source_error error = {""};
	char *records = NULL;
	size_t nr_bytes = 0;
	FILE *memory = alloc_check(open_memstream(&records, &nr_bytes));
	int err;

	if (!source_pid((pid_t)command_int("save", command->what), keep_record, memory, &error))
		fail(error.text);
	if (fclose(memory))
		fail("out of memory");
	if (!strcmp(command->save, "-"))
		return fwrite(records, nr_bytes, 1, stdout) == 1 && !fflush(stdout) ? 0 : 1;
	err = output_file(command->save, OUTPUT_REPLACE, records, nr_bytes);
	free(records);
	if (err) {
		(void)snprintf(error.text, sizeof(error.text), "cannot write %s: %s", command->save,
			output_error(err));
		fail(error.text);
	}
	return 0;
}

static void print_process(void *context, const struct source_process *process)
{
	const char *end = state_end_of(process->end_kind, process->is_gone ? LW_BYE_GONE : 0);
	char uptime[FORMAT_BYTES], held[FORMAT_BYTES], exe[256];

	if (!*(bool *)context)
		printf("%7s  %-12s  %-24s  %s\n", "PID", "UPTIME", "HELD", "PROGRAM");
	*(bool *)context = true;
	printf("%7d  %-12s  %-24s  %s%s%s%s\n", process->pid, format_ns(uptime, process->uptime_ns),
		format_bytes(held, process->live_bytes),
		format_text(exe, sizeof(exe), process->exe), process->is_gone ? "  (" : "", process->is_gone ? end : "",
		process->is_gone ? ")" : "");
}

static int run_list(void)
{
	bool has_heading = false;
	int nr_found = source_list(print_process, &has_heading);

	if (nr_found < 0)
		fail("no SysV shared memory here, so watched processes cannot be listed");
	if (!nr_found)
		puts("no watched process");
	return fflush(stdout) ? 1 : 0;
}

/*
 * Descriptor 2 may be the target's, and its output somebody's input: in a report only the report
 * itself goes there, and nothing that we, or a library of ours, have to complain about.
 */
static void set_stderr_aside(struct command *command)
{
	int null;

	command->stderr_fd = fcntl(command->stderr_fd, F_DUPFD_CLOEXEC, 3);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null >= 0)
		(void)dup2(null, 2);
	else
		close(2);
	if (null > 2)
		close(null);
	output_reserve();
}

/* A person sits there, and asked for nothing else. */
static bool is_for_screen(const struct command *command)
{
	const char *term = getenv("TERM");

	return command->what && !command->is_once && !command->is_report && !command->has_json &&
	       !command->save && strcmp(command->what, "-") && isatty(0) && isatty(1) && term && *term &&
	       strcmp(term, "dumb");
}

int main(int argc, char **argv)
{
	struct command command;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	command = command_parse(argc, argv);
	if (command.is_report) {
		own_name = "leakwatch";
		set_stderr_aside(&command);
	}
	if (command.is_list)
		return run_list();
	if (command_is_watch(&command))
		return run_watch(&command, false);
	if (is_for_screen(&command)) {
		int status = run_watch(&command, true);

		if (status >= 0)
			return status;
	}
	return command.save ? run_save(&command) : run_report(&command);
}
