/* SPDX-License-Identifier: MIT */
/*
 * output.c - writes reports to files and to a descriptor that belongs to somebody else too.
 *
 * Files. The target may run as root, and the path may lie in /tmp, where others plant links. So the
 * path is walked folder by folder: a symbolic link in a folder that everybody may write to is
 * refused unless it is root's or ours, and the last name is opened with O_NOFOLLOW. What exists
 * already is touched only if it is a plain file of ours with one name (a hard link to something
 * precious has two), or a device such as /dev/null.
 *
 * The shared descriptor. O_NONBLOCK belongs to the open file, which the target and its parent use
 * too, so it is not set. Instead poll() says when a pipe has room for PIPE_BUF bytes, only so much
 * is written at a time, and because somebody else may fill that room in between, an interval timer
 * interrupts a write that blocks all the same.
 */
#include "snapshot/report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* ---- the shared descriptor ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void on_alarm(int signal)
{
	(void)signal; /* only interrupts */
}

/* From now on a blocked write is interrupted every 50 ms, so that it is noticed when time is up. */
static void start_interrupting(void)
{
	const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */
	const struct itimerval every = {{0, 50000}, {0, 50000}};
	sigset_t alarm_only;

	(void)sigaction(SIGALRM, &action, NULL);
	(void)sigemptyset(&alarm_only);
	(void)sigaddset(&alarm_only, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &alarm_only, NULL); /* the target may have blocked it */
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

static void stop_interrupting(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};

	(void)setitimer(ITIMER_REAL, &never, NULL);
}

/* Bytes written, 0: not now; -1: never. */
static ssize_t write_some(int fd, const char *text, size_t nr_bytes, int64_t patience_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
	size_t piece = nr_bytes < PIPE_BUF ? nr_bytes : PIPE_BUF;
	int nr_ready = poll(&poll_fd, 1, (int)patience_ms);
	ssize_t written;

	if (nr_ready < 0)
		return errno == EINTR ? 0 : -1;
	if (!nr_ready)
		return 0;
	if (poll_fd.revents & (POLLERR | POLLHUP | POLLNVAL)) {
		errno = EIO;
		return -1;
	}
	written = write(fd, text, piece);
	if (written < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	return written;
}

bool output_shared(int fd, const char *text, size_t nr_bytes)
{
	static int64_t left_ms =
		OUTPUT_PATIENCE_MS; /* time spent waiting, not working, uses it up */
	int64_t began_ms;

	start_interrupting();
	errno = ETIMEDOUT;
	while (nr_bytes > 0 && left_ms > 0) {
		ssize_t written;

		began_ms = now_ms();
		written = write_some(fd, text, nr_bytes, left_ms);
		left_ms -= now_ms() - began_ms;
		if (written < 0)
			break;
		errno = ETIMEDOUT;
		text += written;
		nr_bytes -= (size_t)written;
	}
	stop_interrupting();
	return !nr_bytes;
}

bool output_is_file(int fd, uint64_t dev, uint64_t ino)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 && stat.st_dev == dev && stat.st_ino == ino;
}

/* ---- files ---- */

/* May a symbolic link in this folder be followed? Not one a stranger could have planted. */
static bool is_link_trusted(int folder, const char *name)
{
	struct stat in, link;

	if (fstat(folder, &in) < 0 || fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return !(in.st_mode & S_IWOTH) || link.st_uid == 0 || link.st_uid == geteuid();
}

static int enter(int folder, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	int next = openat(folder, name, flags | O_NOFOLLOW);
	int err = errno;

	if (next < 0 && (err == ENOTDIR || err == ELOOP) && is_link_trusted(folder, name)) {
		next = openat(folder, name, flags);
		err = errno;
	}
	close(folder);
	return next < 0 ? -err : next;
}

/* The folder of path, walked step by step, and in *name the last part. */
static int open_folder(const char *path, const char **name)
{
	int folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_MAX + 1];

	if (folder < 0)
		return -errno;
	for (;;) {
		size_t nr_bytes;

		path += strspn(path, "/");
		nr_bytes = strcspn(path, "/");
		if (!path[nr_bytes])
			break;
		if (nr_bytes >= sizeof(part)) {
			close(folder);
			return -ENAMETOOLONG;
		}
		memcpy(part, path, nr_bytes);
		part[nr_bytes] = '\0';
		folder = enter(folder, part);
		if (folder < 0)
			return folder;
		path += nr_bytes;
	}
	*name = path;
	return folder;
}

/* 0: a new name; 1: a file we may write over; 2: a device; -errno. */
static int look_at(int folder, const char *name)
{
	struct stat stat;

	if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISCHR(stat.st_mode))
		return 2;
	if (S_ISDIR(stat.st_mode))
		return -EISDIR;
	if (S_ISLNK(stat.st_mode))
		return -ELOOP;
	if (!S_ISREG(stat.st_mode) || stat.st_uid != geteuid() || stat.st_nlink != 1)
		return -EPERM;
	return 1;
}

static int write_all(int fd, const char *text, size_t nr_bytes)
{
	while (nr_bytes > 0) {
		ssize_t written = write(fd, text, nr_bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		nr_bytes -= (size_t)written;
	}
	return 0;
}

static int write_new(int folder, const char *name, const char *text, size_t nr_bytes)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = write_all(fd, text, nr_bytes);
	if (close(fd) < 0 && !err)
		err = -errno;
	if (err)
		(void)unlinkat(folder, name, 0);
	return err;
}

/* The name was looked at before; what was opened is looked at again, since it may have changed. */
static int write_over(
	int folder, const char *name, bool is_appended, const char *text, size_t nr_bytes)
{
	int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(folder, name, flags | (is_appended ? O_APPEND : 0));
	struct stat stat;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &stat) < 0)
		err = -errno;
	else if (S_ISREG(stat.st_mode) && (stat.st_uid != geteuid() || stat.st_nlink != 1))
		err = -EPERM;
	else if (S_ISREG(stat.st_mode) && !is_appended && ftruncate(fd, 0) < 0)
		err = -errno;
	else if (S_ISREG(stat.st_mode))
		err = write_all(fd, text, nr_bytes);
	else if (!S_ISCHR(stat.st_mode))
		err = -EPERM;
	else if (!output_shared(fd, text, nr_bytes))
		err = -errno;
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

static int write_beside(int folder, const char *name, const char *text, size_t nr_bytes)
{
	char beside[64];
	int err = -EEXIST;

	for (int nr = 0; nr < 16 && err == -EEXIST; nr++) {
		(void)snprintf(beside, sizeof(beside), ".leakwatch-%d-%d.tmp", (int)getpid(), nr);
		err = write_new(folder, beside, text, nr_bytes);
	}
	if (!err && renameat(folder, beside, folder, name) < 0) {
		err = -errno;
		(void)unlinkat(folder, beside, 0);
	}
	return err;
}

enum { NR_SPARE = 2 }; /* a folder and what is in it */

static int spare[NR_SPARE] = {-1, -1};
static bool is_reserving;

void output_reserve(void)
{
	is_reserving = true;
	for (size_t i = 0; i < NR_SPARE; i++) {
		if (spare[i] < 0)
			spare[i] = open("/", O_PATH | O_CLOEXEC);
	}
}

static void release_spare(void)
{
	for (size_t i = 0; i < NR_SPARE; i++) {
		if (spare[i] >= 0)
			close(spare[i]);
		spare[i] = -1;
	}
}

static int put_file(const char *path, enum output_way way, const char *text, size_t nr_bytes)
{
	const char *name;
	int folder = open_folder(path, &name), err;

	if (folder < 0)
		return folder;
	if (!*name)
		err = -EISDIR;
	else
		err = look_at(folder, name);
	if (err == 2 || (err == 1 && way != OUTPUT_REPLACE))
		err = write_over(folder, name, way == OUTPUT_APPEND, text, nr_bytes);
	else if (err >= 0 && way == OUTPUT_REPLACE)
		err = write_beside(folder, name, text, nr_bytes);
	else if (err == 0)
		err = write_new(folder, name, text, nr_bytes);
	close(folder);
	return err;
}

int output_file(const char *path, enum output_way way, const char *text, size_t nr_bytes)
{
	int err;

	release_spare();
	err = put_file(path, way, text, nr_bytes);
	if (is_reserving)
		output_reserve();
	return err;
}

const char *output_error(int err)
{
	switch (-err) {
	case ELOOP:
		return "it is a symbolic link, which is not followed";
	case EPERM:
		return "it exists and is not a plain file of this user";
	case ENOTDIR:
		return "its folder is no folder, or a link that is not trusted";
	default:
		return strerror(-err);
	}
}
