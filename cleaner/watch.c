/* SPDX-License-Identifier: MIT */
/* watch.c - pidfds, and what to do without; see watch.h. */
#include "cleaner/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* linux/pidfd.h of Linux 6.15, which older headers lack. */
struct exit_info {
	uint64_t mask;
	uint64_t cgroup_id;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_INFO_EXIT_MASK (UINT64_C(1) << 3)
#define PIDFD_GET_EXIT_INFO _IOWR(0xFF, 11, struct exit_info)

_Static_assert(sizeof(struct exit_info) == 64, "the size of the first version");

enum { SPARE_FDS = 16 }; /* for reading /proc, a terminal, the reporters' */

struct proc_stat {
	char state;
	uint64_t nr_threads, start_ticks, vsize_bytes;
	int exit_code; /* known of zombies of our own user */
};

/* Does /proc show the pids we see? */
static bool is_proc_ours(void)
{
	static int answer = -1;
	char text[16];
	ssize_t got;

	if (answer < 0) {
		got = readlink("/proc/self", text, sizeof(text) - 1);
		text[got > 0 ? got : 0] = '\0';
		answer = got > 0 && atoi(text) == getpid();
	}
	return answer;
}

static ssize_t read_whole(const char *path, char *text, size_t max_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	do
		got = read(fd, text, max_bytes - 1);
	while (got < 0 && errno == EINTR);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got;
}

/* 0, -ESRCH: no such process, or another error: not known. */
static int read_proc_stat(int32_t pid, struct proc_stat *stat)
{
	char path[32], text[2048], *at;
	ssize_t got;

	if (!is_proc_ours())
		return -ENOSYS;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	got = read_whole(path, text, sizeof(text));
	if (got <= 0)
		return got == -ENOENT || got == -ESRCH ? -ESRCH : -EIO;
	at = strrchr(text, ')'); /* the name before it may hold anything */
	if (!at || strlen(at) < 4)
		return -EIO;
	stat->state = at[2];
	at += 3;
	for (int nr = 4; nr <= 52; nr++) {
		uint64_t value = strtoull(at, &at, 10);

		if (nr == 20)
			stat->nr_threads = value;
		else if (nr == 22)
			stat->start_ticks = value;
		else if (nr == 23)
			stat->vsize_bytes = value;
		else if (nr == 52)
			stat->exit_code = (int)value;
	}
	return 0;
}

/* A main thread that has left looks like a zombie, but its other threads are counted. */
static bool is_dead(const struct proc_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->nr_threads <= 1;
}

static bool is_same(const struct watch *watch, const struct proc_stat *stat)
{
	return !lw_region_is_reused(watch->start_ticks, stat->start_ticks);
}

static bool is_number_alive(const struct watch *watch)
{
	struct proc_stat stat;

	if (kill(watch->pid, 0) < 0 && errno == ESRCH)
		return false;
	/* hidden from us (hidepid) looks like gone, but the number is there */
	return read_proc_stat(watch->pid, &stat) || (is_same(watch, &stat) && !is_dead(&stat));
}

/* A pidfd, unless too few descriptors would be left; -1 and errno. */
static int open_pidfd(int32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
		(rlim_t)fd + SPARE_FDS < limit.rlim_cur)
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}

bool watch_open(struct watch *watch, int32_t pid, uint64_t start_ticks)
{
	struct proc_stat stat;

	*watch = (struct watch){pid, open_pidfd(pid), start_ticks};
	if (watch->fd < 0)
		return errno != ESRCH && is_number_alive(watch);
	/* it holds now whoever has the number; is it the one that was meant? */
	if (read_proc_stat(pid, &stat) || is_same(watch, &stat))
		return true;
	watch_close(watch);
	return false;
}

void watch_close(struct watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

bool watch_is_alive(const struct watch *watch)
{
	struct pollfd ended = {watch->fd, POLLIN, 0};

	if (watch->fd < 0)
		return is_number_alive(watch);
	return poll(&ended, 1, 0) != 1;
}

bool watch_has_memory(const struct watch *watch)
{
	struct proc_stat stat;

	return !read_proc_stat(watch->pid, &stat) && is_same(watch, &stat) && !is_dead(&stat) &&
	       stat.vsize_bytes;
}

static uint64_t root_mount(const char *path)
{
	struct statx root;

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID | STATX_INO, &root) < 0)
		return 0;
	/* a chroot into a plain folder is on the same mount */
	return root.stx_mnt_id ^ root.stx_ino << 24 ^ (uint64_t)root.stx_dev_minor << 16;
}

bool watch_has_other_root(int32_t pid)
{
	uint64_t own, its;
	char path[32];

	if (!is_proc_ours())
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/root/", (int)pid);
	own = root_mount("/");
	its = root_mount(path);
	return own && its && own != its;
}

static bool exit_info(const struct watch *watch, int *status)
{
	struct exit_info info = {.mask = PIDFD_INFO_EXIT_MASK};

	if (watch->fd < 0 || ioctl(watch->fd, PIDFD_GET_EXIT_INFO, &info) < 0 ||
		!(info.mask & PIDFD_INFO_EXIT_MASK))
		return false;
	*status = info.exit_code;
	return true;
}

bool watch_status(const struct watch *watch, int *status)
{
	struct proc_stat stat;

	if (exit_info(watch, status))
		return true;
	if (!read_proc_stat(watch->pid, &stat) && is_dead(&stat) && is_same(watch, &stat)) {
		*status = stat.exit_code;
		return true;
	}
	/* it may have been reaped just between the two questions */
	return exit_info(watch, status);
}
