/* SPDX-License-Identifier: MIT */
/* reporter.c - children that write post-mortem reports; see reporter.h. */
#include "cleaner/reporter.h"

#include "preload/share/queue.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cleaner/tty.h"
#include "preload/base/base.h"
#include "preload/share/place.h"

enum { MAX_RUNS = 4 };

/* Big debug information takes a while; a terminal that was stopped for good takes for ever. */
static const uint64_t max_run_ns = UINT64_C(60000000000);

struct run {
	pid_t pid; /* 0: this place is free */
	int shmid;
	struct lw_region_header *map;
	uint64_t began_ns;
};

static struct run runs[MAX_RUNS];
static char own_dir[PATH_MAX];

void reporter_init(const char *argv0)
{
	ssize_t got = readlink("/proc/self/exe", own_dir, sizeof(own_dir) - 1);
	char *slash;

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
	for (size_t i = 0; i < MAX_RUNS; i++) {
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
	for (size_t i = 0; i < MAX_RUNS; i++) {
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

bool reporter_start(
	int shmid, const struct lw_region_header *copy, int signal, struct lw_region_header *map)
{
	char path[PATH_MAX], id[32], sig[32], report[] = "--report";
	char *argv[] = {path, report, end_of(copy), id, signal ? sig : NULL, NULL};
	struct run *run = free_run();
	struct lw_options options;
	int tty = -1;
	pid_t pid;

	read_options(copy, &options);
	if (!run || !find_program(options.programs, path))
		return false;
	(void)snprintf(id, sizeof(id), "--shmid=%d", shmid);
	(void)snprintf(sig, sizeof(sig), "--signal=%d", signal);
	if (copy->flags & LW_REGION_STDERR_TTY)
		tty = tty_open(copy->stderr_dev, copy->stderr_ino, copy->started_real_ns);
	pid = spawn(argv, tty);
	if (tty >= 0)
		close(tty);
	if (!pid)
		return false;
	*run = (struct run){pid, shmid, map, now_ns()};
	return true;
}

static void finish(struct run *run)
{
	lw_store_release(&run->map->state, LW_STATE_REPORTED);
	lw_queue_remove(lw_load(&run->map->msqid));
	(void)shmctl(run->shmid, IPC_RMID, NULL);
	(void)shmdt(run->map);
	run->pid = 0;
}

unsigned reporter_reap(uint64_t now)
{
	unsigned nr_running = 0;

	for (size_t i = 0; i < MAX_RUNS; i++) {
		struct run *run = &runs[i];

		if (!run->pid)
			continue;
		if (waitpid(run->pid, NULL, WNOHANG) == 0) {
			nr_running++;
			if (now > run->began_ns + max_run_ns)
				(void)kill(run->pid, SIGKILL);
		} else {
			finish(run);
		}
	}
	return nr_running;
}
