/* SPDX-License-Identifier: MIT */
/* tty.c - looking through /dev for a terminal; see tty.h. */
#include "cleaner/tty.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 300 };

struct terminal {
	uint64_t dev, ino, started_real_ns;
};

static bool is_it(const struct terminal *terminal, const struct stat *st)
{
	uint64_t changed_ns =
		(uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;

	return S_ISCHR(st->st_mode) && st->st_dev == terminal->dev && st->st_ino == terminal->ino &&
	       changed_ns <= terminal->started_real_ns;
}

/* Opened without waiting for a carrier, without becoming ours; then a plain blocking descriptor. */
static int open_path(const struct terminal *terminal, const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) < 0 || !is_it(terminal, &st))
		return -1;
	fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !is_it(terminal, &st) || !isatty(fd) ||
		fcntl(fd, F_SETFL, 0) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int search(const struct terminal *terminal, const char *folder, bool is_all)
{
	DIR *dir = opendir(folder);
	char path[PATH_BYTES];
	struct dirent *entry;
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (!is_all && strncmp(name, "tty", 3) && strcmp(name, "console"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
		fd = open_path(terminal, path);
	}
	if (dir)
		(void)closedir(dir);
	return fd;
}

int tty_open(uint64_t dev, uint64_t ino, uint64_t started_real_ns)
{
	struct terminal terminal = {dev, ino, started_real_ns};
	int fd = search(&terminal, "/dev/pts", true);

	return fd >= 0 ? fd : search(&terminal, "/dev", false);
}
