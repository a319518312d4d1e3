/* SPDX-License-Identifier: MIT */
/*
 * asked.h - what the options of the person, and of the target, ask for: what is not to be listed, and names.
 */
#ifndef LW_SNAPSHOT_ASKED_H
#define LW_SNAPSHOT_ASKED_H

#include <stdio.h>

#include "preload/share/options.h"
#include "snapshot/command.h"
#include "snapshot/model/model.h"
#include "snapshot/symbols/suppress.h"
#include "snapshot/symbols/symbols.h"

/* The program's own rules (model NULL: none), and those of the file; complaints are by the name of `speaker`. */
void asked_suppressions(const struct model *model, const struct lw_options *options, const char *speaker,
	FILE *complaints, struct suppress *suppress);

/* Its number here: in its own pid namespace, which the records name, it may have another. 0: not known. */
int asked_pid(const struct command *command, const struct model *model);

/* Of that process; of one that lives its own files are looked at, where it does not see the same ones as we. */
struct symbols *asked_symbols(int pid, const char *state, bool is_debug_of_all);

#endif
