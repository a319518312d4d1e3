/* SPDX-License-Identifier: MIT */
/*
 * region.c - a running or just ended process as a source, read from its black box.
 *
 * Most of it is about saying clearly why there is nothing to read: no such process, another user's,
 * one that is not watched, one whose library is of another version. A pid may have been reused
 * since a process died and its region is still there, so the start time of the living one is
 * compared.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/source/farewell.h"

static uint64_t now_mono_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The sink of a dump that only asks whether the process is still there afterwards. */
static bool dump(const struct lw_region_header *region, uint64_t bytes, lw_emit_sink_fn *sink,
	void *context, struct source_error *error)
{
	bool is_whole = lw_emit_region(region, bytes, now_mono_ns(), sink, context);

	if (!is_whole)
		(void)snprintf(
			error->text, sizeof(error->text), "the region changed while it was read");
	lw_region_detach(region);
	return is_whole;
}

/* Is what a line of its maps names the file of a black box? Then its name is left in `file`. */
static bool is_black_box(pid_t pid, char *line, char file[PATH_MAX])
{
	char *name = strchr(line, '/'), path[PATH_MAX + 32];
	struct stat stat_of;
	bool is_one;
	int fd;

	if (!name || !strstr(line, " rw-s ") || strlen(name) >= PATH_MAX)
		return false;
	name[strcspn(name, "\n")] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, name);
	fd = stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	is_one = source_is_boxfile(fd);
	(void)close(fd);
	if (is_one)
		(void)strcpy(file, name);
	return is_one;
}

/* Has it the library, but no region that we know of? Where it keeps it in a file, that one's name is left in `file`. */
static bool is_out_of_sight(pid_t pid, char file[PATH_MAX])
{
	char path[48], line[PATH_MAX + 128];
	bool is_found = false;
	FILE *maps;

	file[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !file[0] && fgets(line, sizeof(line), maps)) {
		is_found = is_found || strstr(line, "/libleakwatch.so");
		is_found = is_black_box(pid, line, file) || is_found;
	}
	if (maps)
		(void)fclose(maps);
	return is_found;
}

static void say_not_watched(pid_t pid, bool is_alive, struct source_error *error)
{
	char path[32], file[PATH_MAX];
	struct stat stat_of;
	bool is_seen;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	is_seen = stat(path, &stat_of) == 0;
	/* where /proc hides the processes of others, the kernel still says that they are there */
	if (!pid || (!is_alive && !is_seen && kill(pid, 0) < 0 && errno == ESRCH))
		(void)snprintf(error->text, sizeof(error->text), "no process %d", (int)pid);
	else if (geteuid() && !is_seen)
		(void)snprintf(error->text, sizeof(error->text), "process %d belongs to another user", (int)pid);
	else if (geteuid() && stat_of.st_uid != geteuid())
		(void)snprintf(error->text, sizeof(error->text),
			"process %d belongs to another user (uid %u)", (int)pid,
			(unsigned)stat_of.st_uid);
	else if (!is_out_of_sight(pid, file))
		(void)snprintf(error->text, sizeof(error->text),
			"process %d is not watched; start it with `leakwatch PROGRAM ...` or "
			"with LD_PRELOAD=libleakwatch.so",
			(int)pid);
	else if (file[0])
		(void)snprintf(error->text, sizeof(error->text),
			"process %d keeps its tables in a file, as they are now: leakwatch-snapshot %.200s", (int)pid, file);
	else
		(void)snprintf(error->text, sizeof(error->text),
			"process %d is watched, but has no region that others can see: it has not allocated "
			"anything yet, or there was no shared memory to be had", (int)pid);
}

static void say_why(int err, pid_t pid, bool is_alive, const char *why, struct source_error *error)
{
	switch (err) {
	case -EACCES:
		(void)snprintf(error->text, sizeof(error->text),
			"the region of process %d belongs to another user", (int)pid);
		break;
	case -EAGAIN:
		(void)snprintf(error->text, sizeof(error->text),
			"process %d is still starting; try again", (int)pid);
		break;
	case -EPROTO:
		(void)snprintf(error->text, sizeof(error->text),
			"cannot read the region of process %d: %s", (int)pid, why);
		break;
	case -ESRCH:
		say_not_watched(pid, is_alive, error);
		break;
	default:
		(void)snprintf(error->text, sizeof(error->text),
			"cannot map the region of process %d: %s", (int)pid, strerror(-err));
	}
}

/*
 * A region without a key: where no cleaner can be had it is marked for removal, and goes with its process,
 * but until then it can be attached by its number, which is found by looking at all.
 */
static int attach_unnamed(struct source_region *found, uint64_t start_ticks, const char **why)
{
	struct shm_info info;
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	for (int slot = 0; slot <= last; slot++) {
		struct shmid_ds stat;
		int shmid = shmctl(slot, SHM_STAT, &stat);

		if (shmid < 0 || !(stat.shm_perm.mode & SHM_DEST) ||
			lw_region_attach_id(shmid, &found->region, &found->bytes, why))
			continue;
		found->shmid = shmid;
		if (found->region->pid == found->place.inner_pid &&
			!lw_region_is_reused(found->region->start_ticks, start_ticks))
			return 0;
		lw_region_detach(found->region);
	}
	return -ESRCH;
}

bool source_attach(pid_t pid, struct source_region *found, struct source_error *error)
{
	uint64_t start_ticks = 0;
	const char *why = "";
	int32_t ppid;
	int err;

	found->is_alive = lw_region_proc_stat(pid, &start_ticks, &ppid);
	if (!place_enter(pid, &found->place, error))
		return false;
	err = lw_region_attach(found->place.inner_pid, found->is_alive ? start_ticks : 0, &found->region,
		&found->bytes, &found->shmid, &why);
	if (err == -ESRCH && found->is_alive)
		err = attach_unnamed(found, start_ticks, &why);
	if (err)
		say_why(err, pid, found->is_alive, why, error);
	return !err;
}

bool source_pid(pid_t pid, lw_emit_sink_fn *sink, void *context, struct source_error *error)
{
	struct farewell farewell = {.sink = sink, .context = context};
	struct source_region found;

	if (!source_attach(pid, &found, error))
		return false;
	farewell.flags = found.is_alive ? 0 : LW_BYE_GONE;
	return dump(found.region, found.bytes, farewell_record, &farewell, error);
}

bool source_shmid(int shmid, lw_emit_sink_fn *sink, void *context, struct source_error *error)
{
	const struct lw_region_header *region;
	const char *why = "it cannot be mapped";
	uint64_t bytes;
	int err = lw_region_attach_id(shmid, &region, &bytes, &why);

	if (err) {
		if (err != -EPROTO)
			why = strerror(err == -ESRCH ? EINVAL : -err);
		(void)snprintf(
			error->text, sizeof(error->text), "cannot read segment %d: %s", shmid, why);
		return false;
	}
	return dump(region, bytes, sink, context, error);
}
