/* SPDX-License-Identifier: MIT */
/*
 * init.c - coming up and going down; the only file that knows the order.
 *
 * The first hook brings us up, whoever it is for: .preinit_array code, a constructor of an earlier
 * library, the loader. Our constructor only makes sure that it has happened by main, and does what
 * must not be done inside a hook: registering handlers. The report is made after the last destructor of the last
 * library: our own destructor runs too early for that, so it registers one more handler, which
 * glibc runs after all of _dl_fini.
 *
 * The beginning of exit matters too: what is freed only then was held all along. exit(), also the one
 * behind main's return, first runs the destructors of the calling thread's own objects, then all
 * handlers; so one more of those destructors, of the first thread, is told in time. An exit called
 * in another thread goes through our hook.
 */
#include <elf.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/base/early.h"
#include "preload/base/hot.h"
#include "preload/base/log.h"
#include "preload/base/mem.h"
#include "preload/base/real.h"
#include "preload/base/sys.h"
#include "preload/live/cleaner.h"
#include "preload/live/narrate.h"
#include "preload/live/report.h"
#include "preload/live/scan.h"
#include "preload/live/serve.h"
#include "preload/live/spawn.h"
#include "preload/live/tell.h"
#include "preload/record/blocks.h"
#include "preload/record/sites.h"
#include "preload/record/threads.h"
#include "preload/record/track.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"
#include "preload/share/process.h"
#include "preload/unwind/modules.h"

#include <sys/mman.h>
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* The program's own settings and suppressions, if it exports any. */
extern const char *leakwatch_default_options(void) __attribute__((weak));
extern const char *leakwatch_default_suppressions(void) __attribute__((weak));
extern const char *__lsan_default_suppressions(void) __attribute__((weak));
extern void __asan_init(void) __attribute__((weak));
extern int __cxa_atexit(void (*function)(void *), void *argument, void *dso);
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *dso)
		__attribute__((weak));

enum { EARLY_RESERVE_BYTES = 4096 };

static struct lw_options options LW_ROOM;
static uint32_t is_going_up;
static int32_t put_off_pid; /* the process that left its coming up to its first allocation; 0 none */

static void append(char *text, size_t text_bytes, const char *more)
{
	size_t used = strlen(text);

	if (used + strlen(more) + 1 < text_bytes)
		stpcpy(text + used, more);
}

/* A relative path means the folder the program was started in, not the one it ends in. */
static void append_absolute(char *text, const char *key, const char *path)
{
	char cwd[LW_OPTION_PATH_BYTES];
	const char *quote;

	if (!path[0] || path[0] == '/' || lw_syscall(SYS_getcwd, cwd, sizeof(cwd)) < 2 || cwd[0] != '/')
		return;
	append(text, LW_OPTIONS_BYTES, ":");
	append(text, LW_OPTIONS_BYTES, key);
	quote = strchr(cwd, '\'') || strchr(path, '\'') ? "\"" : "'";
	append(text, LW_OPTIONS_BYTES, "=");
	append(text, LW_OPTIONS_BYTES, quote);
	append(text, LW_OPTIONS_BYTES, cwd);
	append(text, LW_OPTIONS_BYTES, "/");
	append(text, LW_OPTIONS_BYTES, path);
	append(text, LW_OPTIONS_BYTES, quote);
}

/* What the program itself asks for, and what its environment does; NULL: nothing. */
struct settings {
	const char *own, *given;
	size_t own_bytes, given_bytes;
};

static bool is_given_too_long(const struct settings *from)
{
	return from->own_bytes + from->given_bytes > LW_OPTIONS_BYTES - 1;
}

static void parse_settings(
	const struct settings *from, struct lw_options *into, lw_options_complain_fn *complain)
{
	lw_options_init(into);
	if (from->own)
		lw_options_parse(into, from->own, "leakwatch_default_options", complain, NULL);
	if (from->given && !is_given_too_long(from))
		lw_options_parse(into, from->given, "LEAKWATCH_OPTIONS", complain, NULL);
}

/*
 * They have been parsed without a word: only with the tables it is known who we are. Who may not report on stderr
 * does not complain there either; a shell script would say it as often as it starts a program.
 */
static LW_NOINLINE void complain_of_settings(const struct settings *from)
{
	struct lw_options again;

	parse_settings(from, &again, lw_log_line);
	if (is_given_too_long(from))
		lw_log("LEAKWATCH_OPTIONS: %zu bytes are too many, all of it is ignored", from->given_bytes);
}

/* The settings in force, and the text of them that the reporter will parse again; how much of it a person wrote. */
static size_t read_options(struct settings *from, char text[LW_OPTIONS_BYTES])
{
	struct lw_options silent;
	size_t nr_given;

	from->own = leakwatch_default_options ? leakwatch_default_options() : NULL;
	from->given = lw_process_env("LEAKWATCH_OPTIONS");
	from->own_bytes = from->own ? strlen(from->own) + 1 : 0;
	from->given_bytes = from->given ? strlen(from->given) : 0;
	parse_settings(from, &options, NULL);
	if (from->own) {
		append(text, LW_OPTIONS_BYTES, from->own);
		append(text, LW_OPTIONS_BYTES, ":");
	}
	if (from->given && !is_given_too_long(from))
		append(text, LW_OPTIONS_BYTES, from->given);
	nr_given = strlen(text);
	silent = options;
	append_absolute(text, "json", silent.json);
	append_absolute(text, "log_path", silent.log_path);
	append_absolute(text, "black_box", silent.black_box);
	append_absolute(text, "suppressions", silent.suppressions);
	return nr_given;
}

static void keep_suppressions(void)
{
	const char *own = NULL;
	size_t bytes;

	if (leakwatch_default_suppressions)
		own = leakwatch_default_suppressions();
	else if (__lsan_default_suppressions)
		own = __lsan_default_suppressions();
	if (!own)
		return;
	bytes = strnlen(own, LW_SUPPRESSIONS_BYTES - 1);
	memcpy(lw_box->suppressions, own, bytes);
	lw_box->suppressions_bytes = lw_own.suppressions_bytes = (uint32_t)bytes;
}

static const char *program_name(void)
{
	const char *slash = memrchr(lw_box->exe, '/', lw_own.exe_bytes);

	return slash ? slash + 1 : lw_box->exe;
}

static bool bring_up_tables(int *refusal)
{
	if (options.max_sites > LW_MAX_BLOCK_SITES)
		options.max_sites = LW_MAX_BLOCK_SITES;
	if (!lw_box_create(&options, LW_BLOCKS_ROOT_BYTES, refusal))
		return false;
	return lw_sites_init() && lw_blocks_init(lw_real.is_glibc && !lw_real.is_overridden ? 5 : 4);
}

static void help_line(void *context, const char *line)
{
	lw_log_line(context, line);
}

static bool refuse(enum lw_log_cause cause, const char *why)
{
	(void)lw_log_once(cause, "%s; this program runs untracked", why);
	lw_track_stop();
	return false;
}

/* Only the process that was started says so: what its children write may be captured. */
static bool refuse_for_memory(const struct settings *settings)
{
	bool is_root = lw_box_put_sign();

	lw_cleaner_register();
	if (is_root)
		complain_of_settings(settings);
	if (is_root || options.verbose)
		return refuse(LW_LOG_NO_MEMORY, "no memory for our tables");
	lw_track_stop();
	return false;
}

static bool go_up(void)
{
	static char text[LW_OPTIONS_BYTES] LW_ROOM;
	enum lw_cleaner_found cleaner = LW_CLEANER_LAUNCHER;
	struct settings settings;
	int refusal = 0, queue_error;
	size_t nr_given;

	if (lw_process_aux(AT_SECURE)) { /* a setuid program: nothing of its environment is for us */
		lw_track_stop();
		return false;
	}
	lw_log_init();
	lw_real_init();
	if (__asan_init)
		return refuse(LW_LOG_ASIDE, "the program is built with AddressSanitizer, which has its own malloc");
	nr_given = read_options(&settings, text);
	lw_spawn_init(options.programs);
	if (!bring_up_tables(&refusal))
		return refuse_for_memory(&settings);
	stpcpy(lw_box->options, text);
	lw_box->options_bytes = lw_own.options_bytes = (uint32_t)strlen(text);
	text[nr_given] = '\0'; /* now it is for people */
	if (lw_box->flags & LW_REGION_ROOT) {
		lw_options_check_names(&options, lw_log_line, NULL);
		if (options.help)
			lw_options_help(help_line, NULL);
	}
	if (lw_options_follows(&options, program_name()))
		lw_box->flags |= LW_REGION_WATCHED;
	if (lw_box->flags & (LW_REGION_ROOT | LW_REGION_WATCHED))
		complain_of_settings(&settings);
	keep_suppressions();
	if (options.verbose && lw_real.is_overridden)
		lw_log("the program has its own malloc: only operator new is seen");
	if (options.sample) { /* what points to a block may be passed over, and a block that is not known be right */
		options.scan = LW_SCAN_OPTION_NEVER;
		lw_wrong_not_all_known();
	}
	lw_report_init(&options);
	lw_scan_init(&options);
	lw_tell_init(&options);
	lw_threads_init();
	lw_hot.depth = options.depth;
	lw_hot.sample_bytes = options.sample;
	lw_hot.chunks = (uint8_t *)lw_box + lw_box->chunks.off;
	lw_hot.start_ns = lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE);
	lw_box->granule_bytes = 1u << lw_hot.granule_shift;
	(void)lw_syscall(SYS_madvise, &lw_hot_page, sizeof(lw_hot_page), MADV_WIPEONFORK);
	queue_error = lw_box_add_queue();
	lw_track_start();
	if (!options.stay || !(lw_box->flags & LW_REGION_ROOT)) /* else the launcher waits for us */
		cleaner = lw_cleaner_register();
	lw_narrate_start(&options, text, refusal, queue_error, cleaner);
	return true;
}

/*
 * Shell scripts and builds start thousands of processes, of which many end before they allocate
 * anything. The child of a watched process comes up at its first event, unless it was asked to report
 * even that nothing happened: then nothing is lost, since without a block there is nothing to report.
 * A program that enters a sandbox comes up just before (hooks/sandbox.c).
 */
static bool may_wait(void)
{
	static const char *const not_words[] = { "json", "report", "verbose", "help", "black_box", "stay" };
	const char *given = lw_process_env("LEAKWATCH_OPTIONS");

	if (leakwatch_default_options || __asan_init || lw_process_aux(AT_SECURE))
		return false;
	for (size_t i = 0; given && i < LW_ARRAY_LENGTH(not_words); i++) {
		if (strstr(given, not_words[i]))
			return false;
	}
	return lw_process_is_plain_child();
}

/* Is this a vfork child of the process that has not come up? Then the tables would be its parent's. */
static bool is_in_parents_memory(void)
{
	int32_t self = lw_sys_getpid();

	return put_off_pid && put_off_pid != self &&
	       lw_syscall(SYS_kcmp, self, put_off_pid, KCMP_VM, 0, 0) == 0;
}

bool lw_bring_up(void)
{
	uint32_t nobody = 0;

	if (is_in_parents_memory())
		return false;
	/* a second thread, this early, passes untracked rather than wait for the first */
	if (!__atomic_compare_exchange_n(&is_going_up, &nobody, 1, false, __ATOMIC_ACQ_REL,
			__ATOMIC_ACQUIRE))
		return false;
	return go_up();
}

void lw_now_and_then(void)
{
	lw_scan_look(&options);
	lw_serve_look();
}

void lw_child_started(void)
{
	lw_scan_forked();
	lw_serve_forked();
	(void)lw_box_add_queue();
	if (lw_options_follows(&options, program_name()))
		lw_box->flags |= LW_REGION_WATCHED;
	(void)lw_cleaner_register();
}

static void before_fork(void) LW_NO_LOCK_CHECK
{
	lw_lock_acquire(&lw_sites_lock);
}

static void after_fork(void) LW_NO_LOCK_CHECK
{
	lw_lock_release(&lw_sites_lock);
}

static void after_fork_in_child(void)
{
	lw_lock_reset(&lw_sites_lock);
	lw_track_forked_inside();
}

static void at_quick_end(void)
{
	(void)lw_report_end(LW_END_QUICK_EXIT, -1);
}

/* exit's last handler. exit keeps its status to itself, so a status of our own means to leave here. */
static void at_end(void *unused)
{
	int status = lw_report_end(LW_END_EXIT, -1);

	(void)unused;
	if (status == -1)
		return;
	(void)fflush(NULL);
	lw_real.exit_now(status);
}

static void exit_begins(void *unused)
{
	(void)unused;
	lw_track_exit_begins();
}

/*
 * libc allocates the entry, which must not come from the program's heap: for the moment, calloc is
 * the bootstrap arena's. An arena without room would make libc give up.
 */
static void watch_exit(void)
{
	void *(*real_calloc)(size_t, size_t) = lw_real.calloc;

	if (!__cxa_thread_atexit_impl || !lw_real_is_calloc_ours() ||
			lw_early_used_bytes() > LW_EARLY_BYTES - EARLY_RESERVE_BYTES)
		return;
	lw_store(&lw_real.calloc, lw_early_calloc);
	(void)__cxa_thread_atexit_impl(exit_begins, NULL, &options);
	lw_store(&lw_real.calloc, real_calloc);
}

__attribute__((constructor)) static void start(void)
{
	int saved_errno = errno;

	if (!lw_track_is_on() && may_wait())
		put_off_pid = lw_sys_getpid();
	else if (lw_track_enter())
		lw_track_leave();
	if (lw_track_is_on() || put_off_pid) {
		lw_threads_make_key();
		(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
		(void)at_quick_exit(at_quick_end);
		watch_exit();
	}
	errno = saved_errno;
}

__attribute__((destructor)) static void end(void)
{
	if (lw_track_is_on() || put_off_pid)
		(void)__cxa_atexit(at_end, NULL, NULL);
}
