/* SPDX-License-Identifier: MIT */
/*
 * main.c - leakwatch-snapshot: reads what a watched process wrote down, and says what it means.
 *
 * Two ways in. A person asks about a running process, or about a file of records, and gets the
 * answer on stdout. An ending target (or the cleaner after a kill) calls it with --report, and it
 * writes the reports where that process's own options say, then answers through --done-fd.
 *
 * SIGPIPE and SIGXFSZ are ignored: a reader that went away or a limit that is reached is an error
 * of one output, not an end.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/command.h"
#include "snapshot/report/output.h"
#include "snapshot/run.h"

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
	if (command.is_report)
		set_stderr_aside(&command);
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
