/* SPDX-License-Identifier: MIT */
/* asked.c - see asked.h. */
#include "snapshot/asked.h"

#include <string.h>
#include <sys/stat.h>

#include "snapshot/alloc.h"
#include "snapshot/model/verdict.h"

static void complain_of_lines(
	FILE *complaints, const char *speaker, const char *name, size_t nr_bad, size_t first_bad)
{
	if (nr_bad == 1)
		fprintf(complaints, "%s: %s: line %zu is no `leak:PATTERN`, ignored\n", speaker, name,
			first_bad);
	else if (nr_bad)
		fprintf(complaints,
			"%s: %s: line %zu and %zu more are no `leak:PATTERN`, ignored\n",
			speaker, name, first_bad, nr_bad - 1);
}

void asked_suppressions(const struct model *model, const struct lw_options *options, const char *speaker,
	FILE *complaints, struct suppress *suppress)
{
	const char *own = model ? model_text(model, LW_TEXT_SUPPRESSIONS) : "";
	size_t nr_bad = 0, first_bad = 0;
	int err;

	nr_bad = suppress_parse(suppress, own, strlen(own), &first_bad);
	complain_of_lines(complaints, speaker, "the program's own suppressions", nr_bad, first_bad);
	if (!*options->suppressions)
		return;
	err = suppress_read(suppress, options->suppressions, &nr_bad, &first_bad);
	if (options->verbose)
		fprintf(complaints, "%s: suppressions: %zu rules, with those of %s\n", speaker,
			suppress->nr_rules, options->suppressions);
	if (err)
		fprintf(complaints, "%s: cannot read suppressions %s: %s\n", speaker,
			options->suppressions, strerror(-err));
	else
		complain_of_lines(complaints, speaker, options->suppressions, nr_bad, first_bad);
}

int asked_pid(const struct command *command, const struct model *model)
{
	if (command->what && command_is_number(command->what))
		return command_int("once", command->what);
	return model ? model->hello.pid : 0;
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

/* Its frames are not shown unless full_stacks asks for them. */
static bool is_library_of_the_system(const char *path)
{
	return verdict_owner(path) != VERDICT_USER;
}

struct symbols *asked_symbols(int pid, const char *state, bool is_debug_of_all)
{
	char root[32];
	struct symbols *symbols = alloc_check(symbols_new(root_of(pid, state, root)));

	if (!is_debug_of_all)
		symbols_skip_debug(symbols, is_library_of_the_system);
	return symbols;
}
