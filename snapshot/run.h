/* SPDX-License-Identifier: MIT */
/*
 * run.h - the things this program does, each the rest of main() and its status.
 *
 * run_report() is what an ending target asks for too.
 */
#ifndef LW_SNAPSHOT_RUN_H
#define LW_SNAPSHOT_RUN_H

#include "snapshot/command.h"

int run_report(const struct command *command);

/* Columns, JSON or records of a watch, or (is_screen) the screen; -1: it wants a report instead. */
int run_watch(const struct command *command, bool is_screen);

/* The records of a process as it is now, into a file. */
int run_save(const struct command *command);

int run_list(void);

#endif
