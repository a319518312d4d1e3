/* SPDX-License-Identifier: MIT */
/* run_watch.c - a process, or a saved watch, followed from tick to tick. */
#include "snapshot/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "snapshot/asked.h"
#include "snapshot/source/source.h"
#include "snapshot/view/view.h"

static bool is_box(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	bool is_it = fd >= 0 && source_is_boxfile(fd);

	if (fd >= 0)
		close(fd);
	return is_it;
}

int run_watch(const struct command *command, bool is_screen)
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
	asked_suppressions(NULL, &options, "leakwatch-snapshot", stderr, &suppress);
	settings.symbols = asked_symbols(asked_pid(command, NULL), "live", options.full_stacks);
	return is_screen ? view_screen(&settings) : view_plain(&settings);
}
