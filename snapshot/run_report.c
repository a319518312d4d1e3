/* SPDX-License-Identifier: MIT */
/*
 * run_report.c - one report: of a process as it is now, of a file of records, or, for an ending target or the
 * cleaner, of what is left, where that process's own options say.
 *
 * All go the same way: source -> decode -> model -> judge -> outputs.
 */
#include "snapshot/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/share/report.h"
#include "snapshot/alloc.h"
#include "snapshot/asked.h"
#include "snapshot/fail.h"
#include "snapshot/model/decode.h"
#include "snapshot/model/past.h"
#include "snapshot/model/state.h"
#include "snapshot/report/deliver.h"
#include "snapshot/report/output.h"
#include "snapshot/source/memory.h"
#include "snapshot/source/source.h"

enum { STATUS_NOT_SEARCHED = 3 }; /* 1: something is lost */

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

/* ---- answering ---- */

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

int run_report(const struct command *command)
{
	struct lw_options options;
	struct suppress suppress = {0};
	struct report report = {.suppress = &suppress,
		.options = &options,
		.began_ns = report_now_ns(),
		.signal = command->signal};
	const char *speaker = command->is_report ? "leakwatch" : "leakwatch-snapshot"; /* as the library calls itself */
	char *complaints = NULL;
	size_t nr_bytes;
	FILE *memory = alloc_check(open_memstream(&complaints, &nr_bytes));
	bool is_searched;
	int status = 0, pid;

	if (command->has_leaks)
		fail_with(STATUS_NOT_SEARCHED);
	is_searched = !command->has_leaks || ask_for_leaks(command);
	report.model = read_model(command);
	report.state = command->state ? command->state : state_name(report.model);
	report.missing = decode_missing(report.model);
	pid = asked_pid(command, report.model);
	read_options(command, report.model, &options);
	if (command->event >= 0) {
		report.symbols = asked_symbols(pid, report.state, true);
		if (report_judge_event(&report, (size_t)command->event))
			deliver_event(&report, (size_t)command->event, command->stderr_fd);
		say_done(command, &report);
	} else if (!command->is_report || deliver_is_needed(report.model, &options) ||
		command->done_fd >= 0) {
		asked_suppressions(report.model, &options, speaker, memory, &suppress);
		(void)fclose(memory);
		report.symbols = asked_symbols(pid, report.state, options.full_stacks);
		if (strcmp(report.state, "killed")) /* it is there, and its limits are */
			report.left_bytes = memory_left_bytes(pid);
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
