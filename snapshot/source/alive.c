/* SPDX-License-Identifier: MIT */
/* alive.c - a watched process as /proc and its pidfd show it; see alive.h. */
#include "snapshot/source/alive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static void read_exe(pid_t pid, char out[LW_EXE_BYTES])
{
	char path[48];
	ssize_t got;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	got = readlink(path, out, LW_EXE_BYTES - 1);
	out[got > 0 ? got : 0] = '\0';
}

static bool is_marked(int shmid, bool *is_gone)
{
	struct shmid_ds stat;

	*is_gone = shmctl(shmid, IPC_STAT, &stat) < 0 && (errno == EINVAL || errno == EIDRM);
	return !*is_gone && (stat.shm_perm.mode & SHM_DEST);
}

void alive_open(struct alive *alive, pid_t pid, int shmid, bool is_alive)
{
	bool is_gone;

	alive->shmid = shmid;
	alive->was_marked = is_marked(shmid, &is_gone);
	alive->pid = pid;
	alive->was_alive = is_alive;
	alive->pidfd = is_alive ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	read_exe(pid, alive->exe);
}

void alive_close(struct alive *alive)
{
	if (alive->pidfd > 0)
		close(alive->pidfd);
}

bool alive_is_dead(const struct alive *alive)
{
	struct pollfd gone = {alive->pidfd, POLLIN, 0};

	if (!alive->was_alive)
		return true;
	if (alive->pidfd >= 0)
		return poll(&gone, 1, 0) > 0;
	return kill(alive->pid, 0) < 0 && errno == ESRCH;
}

bool alive_has_exec(const struct alive *alive)
{
	char exe[LW_EXE_BYTES];
	bool is_gone, is_removed;

	read_exe(alive->pid, exe);
	if (alive->exe[0] && exe[0] && strcmp(exe, alive->exe))
		return true;
	is_removed = is_marked(alive->shmid, &is_gone) && !alive->was_marked;
	return is_gone || is_removed;
}

void alive_look(const struct alive *alive, char *state, uint64_t *rss_bytes)
{
	char path[48], line[256];
	unsigned long pages;
	const char *at;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)alive->pid);
	file = fopen(path, "re");
	*state = '?';
	if (file && fgets(line, sizeof(line), file) && (at = strrchr(line, ')')) && at[1] && at[2])
		*state = at[2];
	if (file)
		(void)fclose(file);
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)alive->pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*s %lu", &pages) == 1 && pages)
		*rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (file)
		(void)fclose(file);
}
