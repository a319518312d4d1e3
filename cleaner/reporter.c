/* SPDX-License-Identifier: MIT */
/* reporter.c - children that write post-mortem reports; see reporter.h. */
#include "cleaner/reporter.h"

#include "preload/share/queue.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleaner/raw.h"
#include "cleaner/tty.h"
#include "preload/base/base.h"
#include "preload/share/limits.h"
#include "preload/share/place.h"

/* At a time: as many as there are processors, within these bounds. */
enum { LEAST_RUNS = 4, MAX_RUNS = 16 };

/* Big debug information takes a while; one that does nothing at all is stopped, or stuck for good. */
static const uint64_t max_run_ns = UINT64_C(60000000000);
static const uint64_t max_idle_ns = UINT64_C(3000000000);

struct run {
	pid_t pid; /* 0: this place is free */
	int shmid;
	struct lw_region_header *map;
	struct lw_region_header copy; /* as it was checked */
	int signal;
	bool is_second;
	uint64_t began_ns, worked_ns;
	uint64_t work; /* what it was last seen to have done */
};

static struct run runs[MAX_RUNS];
static size_t nr_runs = LEAST_RUNS;
static char own_dir[PATH_MAX];

void reporter_init(const char *argv0)
{
	ssize_t got = readlink("/proc/self/exe", own_dir, sizeof(own_dir) - 1);
	long nr_processors = sysconf(_SC_NPROCESSORS_ONLN);
	char *slash;

	if (nr_processors > LEAST_RUNS)
		nr_runs = nr_processors < MAX_RUNS ? (size_t)nr_processors : MAX_RUNS;
	if (got > 0)
		own_dir[got] = '\0';
	else
		(void)snprintf(own_dir, sizeof(own_dir), "%s", argv0);
	slash = strrchr(own_dir, '/');
	*(slash ? slash : own_dir) = '\0';
}

/* Texts in a region need not end. */
static void read_options(const struct lw_region_header *copy, struct lw_options *options)
{
	char text[LW_OPTIONS_BYTES + 1];

	memcpy(text, copy->options, LW_OPTIONS_BYTES);
	text[LW_OPTIONS_BYTES] = '\0';
	lw_options_init(options);
	lw_options_parse(options, text, "options", NULL, NULL);
}

bool reporter_is_wanted(const struct lw_region_header *copy)
{
	struct lw_options options;

	read_options(copy, &options);
	if (!lw_place_is_given(&options, copy->flags))
		return false;
	return options.json[0] || options.log_path[0] || copy->flags & LW_REGION_STDERR_TTY;
}

bool reporter_is_launcher(const struct lw_region_header *copy)
{
	struct lw_options options;

	read_options(copy, &options);
	return options.stay && copy->flags & LW_REGION_ROOT;
}

static bool try_path(char *out, const char *dir, const char *below)
{
	return dir[0] &&
	       snprintf(out, PATH_MAX, "%s%s/leakwatch-snapshot", dir, below) < PATH_MAX &&
	       access(out, X_OK) == 0;
}

static bool find_program(const char *programs, char *out)
{
	if (programs[0])
		return try_path(out, programs, "");
	return try_path(out, own_dir, "") || try_path(out, own_dir, "/../snapshot") ||
	       try_path(out, LW_BINDIR, "") || try_path(out, LW_LIBEXECDIR, "");
}

static struct run *find_run(int shmid)
{
	for (size_t i = 0; i < nr_runs; i++) {
		if (runs[i].pid && runs[i].shmid == shmid)
			return &runs[i];
	}
	return NULL;
}

bool reporter_has(int shmid)
{
	return find_run(shmid);
}

static struct run *free_run(void)
{
	for (size_t i = 0; i < nr_runs; i++) {
		if (!runs[i].pid)
			return &runs[i];
	}
	return NULL;
}

bool reporter_has_room(void)
{
	return free_run();
}

/* With the signals as a program expects them, and the terminal, if there is one, as stderr. */
static pid_t spawn(char **argv, int tty)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid = 0;

	if (posix_spawn_file_actions_init(&actions))
		return 0;
	if (posix_spawnattr_init(&attributes)) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return 0;
	}
	(void)sigemptyset(&none);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if ((tty >= 0 && posix_spawn_file_actions_adddup2(&actions, tty, 2)) ||
		posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ))
		pid = 0;
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A target that could not report itself (a sandbox, another user since the start) has noted its end. */
static char *end_of(const struct lw_region_header *copy)
{
	static char killed[] = "--state=killed", ended[] = "--state=exit", ended_at_once[] = "--state=_exit",
		    quickly[] = "--state=quick_exit";

	if (copy->state != LW_STATE_RUNNING)
		return killed; /* in the middle of its own report */
	switch (copy->end_kind) {
	case LW_END_EXIT:
		return ended;
	case LW_END__EXIT:
		return ended_at_once;
	case LW_END_QUICK_EXIT:
		return quickly;
	default:
		return killed;
	}
}

/* False: there is no program to start, or a poor cleaner cannot. */
static bool start(struct run *run)
{
	const struct lw_region_header *copy = &run->copy;
	char path[PATH_MAX], id[32], sig[32], report[] = "--report";
	char *argv[] = {path, report, end_of(copy), id, run->signal ? sig : NULL, NULL};
	struct lw_options options;
	int tty = -1;

	read_options(copy, &options);
	if (!find_program(options.programs, path) || lw_limits_hard(LW_LIMIT_FILES) < LW_LIMITS_REPORTER_FILES)
		return false;
	(void)snprintf(id, sizeof(id), "--shmid=%d", run->shmid);
	(void)snprintf(sig, sizeof(sig), "--signal=%d", run->signal);
	if (copy->flags & LW_REGION_STDERR_TTY)
		tty = tty_open(copy->stderr_dev, copy->stderr_ino, copy->started_real_ns);
	run->pid = spawn(argv, tty);
	if (tty >= 0)
		close(tty);
	run->began_ns = run->worked_ns = now_ns();
	return run->pid;
}

static void say_raw(const struct run *run)
{
	struct lw_options options;
	struct shmid_ds stat;

	read_options(&run->copy, &options);
	if (shmctl(run->shmid, IPC_STAT, &stat) == 0)
		raw_report(run->map, stat.shm_segsz, &run->copy, &options, run->signal);
}

static void finish(struct run *run)
{
	lw_store_release(&run->map->state, LW_STATE_REPORTED);
	lw_queue_remove(lw_load(&run->map->msqid));
	(void)shmctl(run->shmid, IPC_RMID, NULL);
	(void)shmdt(run->map);
	run->pid = 0;
}

void reporter_start(
	int shmid, const struct lw_region_header *copy, int signal, struct lw_region_header *map)
{
	struct run *run = free_run();

	*run = (struct run){.shmid = shmid, .map = map, .copy = *copy, .signal = signal};
	if (start(run))
		return;
	say_raw(run);
	finish(run);
}

/* Its end is only good if it has marked the region. A crash, or a kill, may have been bad luck: once. */
static void see_end(struct run *run)
{
	if (lw_load_acquire(&run->map->state) != LW_STATE_REPORTED) {
		if (!run->is_second) {
			run->is_second = true;
			if (start(run))
				return;
		}
		say_raw(run);
	}
	finish(run);
}

static bool is_stuck(struct run *run, uint64_t now)
{
	bool is_at_disk = false;
	uint64_t work = 0;

	if (!lw_region_proc_work(run->pid, &work, &is_at_disk) || is_at_disk || work != run->work ||
		getenv("LEAKWATCH_DEBUGINFOD")) { /* waits for the network */
		run->worked_ns = now;
		run->work = work;
	}
	return now > run->worked_ns + max_idle_ns || now > run->began_ns + max_run_ns;
}

unsigned reporter_reap(uint64_t now)
{
	unsigned nr_running = 0;

	for (size_t i = 0; i < nr_runs; i++) {
		struct run *run = &runs[i];

		if (!run->pid)
			continue;
		if (waitpid(run->pid, NULL, WNOHANG) == 0) {
			if (is_stuck(run, now))
				(void)kill(run->pid, SIGKILL);
		} else {
			see_end(run);
		}
		nr_running += run->pid != 0;
	}
	return nr_running;
}
