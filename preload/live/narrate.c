/* SPDX-License-Identifier: MIT */
/* narrate.c - the lines of option `verbose`; see narrate.h. */
#include "preload/live/narrate.h"

#include "preload/base/log.h"
#include "preload/share/box.h"
#include "preload/share/boxfile.h"
#include "preload/unwind/rules.h"

static bool is_wanted(const struct lw_options *options)
{
	return options->verbose && lw_load(&lw_box->flags) & (LW_REGION_ROOT | LW_REGION_WATCHED);
}

static void say_region(int error)
{
	if (lw_boxfile_path()[0])
		lw_log("region: in file %s, room for %u sites", lw_boxfile_path(), lw_own.max_sites);
	else if (lw_own.shmid >= 0)
		lw_log("region: shared memory segment %d, room for %u sites", lw_own.shmid, lw_own.max_sites);
	else
		lw_log("region: private, no shared memory (error %d): this process cannot be seen from outside",
				-error);
}

static void say_queue(int error)
{
	if (lw_own.msqid >= 0)
		lw_log("queue: number %d, used while somebody watches", lw_own.msqid);
	else if (error)
		lw_log("queue: none (error %d), viewers read the region instead", -error);
	else
		lw_log("queue: none, since there is no shared region");
}

static const char *words_for(enum lw_cleaner_found cleaner)
{
	static const char *const words[LW_NR_CLEANERS] = {
		[LW_CLEANER_THERE] = "there already, it reports if this process is killed",
		[LW_CLEANER_STARTED] = "started, it reports if this process is killed",
		[LW_CLEANER_LAUNCHER] = "none, the launcher stays and reports if this process is killed",
		[LW_CLEANER_NONE] = "none to be had, nobody reports if this process is killed",
	};

	return words[cleaner < LW_NR_CLEANERS ? cleaner : LW_CLEANER_NONE];
}

void lw_narrate_start(const struct lw_options *options, const char *text, int region_error, int queue_error,
		enum lw_cleaner_found cleaner)
{
	if (!is_wanted(options))
		return;
	lw_log("options read: %s", text);
	say_region(region_error);
	say_queue(queue_error);
	lw_log("cleaner: %s", words_for(cleaner));
}

void lw_narrate_end(const struct lw_options *options)
{
	if (is_wanted(options))
		lw_log("rules: %llu stacks were walked, the others remembered; %llu of them past code without a simple rule; %u rules had to go for others",
				(unsigned long long)lw_load(&lw_box->nr_captures),
				(unsigned long long)lw_load(&lw_box->nr_slow_captures),
				lw_load(&lw_load_acquire(&lw_rules)->nr_thrown_out));
}
