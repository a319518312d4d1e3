/* SPDX-License-Identifier: MIT */
/*
 * command.h - what the person, or the ending target, asked leakwatch-snapshot for.
 *
 * A wrong command line ends the program with one line and status 2; --help and --version end it
 * with their text and status 0.
 */
#ifndef LW_SNAPSHOT_COMMAND_H
#define LW_SNAPSHOT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct setting {
	const char *key, *value;
};

struct command {
	bool is_list, is_report, has_json, has_leaks;
	bool is_once, is_columns, has_exact;
	bool has_interval, has_count;
	uint32_t interval_ms, nr_ticks;	       /* of a watch; nr_ticks 0: until it ends */
	const char *json, *save;	       /* file names; NULL: none, stdout */
	const char *state;		       /* NULL: as the records say */
	const char *what;		       /* PID, FILE or "-" */
	int shmid, signal, done_fd, stderr_fd; /* -1: not given */
	int event;			       /* the one that is to be told; -1: all */
	struct setting settings[16];	       /* of the command line, laid over the target's own */
	size_t nr_settings;
};

/* Is a watch in lines asked for, rather than a report or the screen? */
bool command_is_watch(const struct command *command);

struct command command_parse(int argc, char **argv);

/* A number that is not negative; name is the option's, for the complaint. */
int command_int(const char *name, const char *text);

/* Is this a pid, rather than the name of a file? (./123 is a file.) */
bool command_is_number(const char *text);

#endif
