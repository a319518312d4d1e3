/* SPDX-License-Identifier: MIT */
/* unit-tty.c - a terminal is found by its numbers, unless it is not the one it was. */
#include "cleaner/tty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/tap.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, found;
	struct stat st, of_found;
	char text[8] = "";

	if (master < 0 || grantpt(master) || unlockpt(master))
		return tap_skip_all("no pseudo-terminals here");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave < 0 || fstat(slave, &st) < 0)
		return tap_skip_all("no pseudo-terminals here");
	found = tty_open(st.st_dev, st.st_ino, now_ns());
	ok(found >= 0, "it is found");
	ok(fstat(found, &of_found) == 0 && of_found.st_ino == st.st_ino, "it is the right one");
	ok(!(fcntl(found, F_GETFL) & O_NONBLOCK), "a plain descriptor");
	ok(write(found, "seen", 4) == 4 && read(master, text, 4) == 4 && !strcmp(text, "seen"),
		"what is written comes out");
	(void)close(found);
	is_u64(tty_open(st.st_dev, st.st_ino, 1000000000u), (uint64_t)-1,
		"a process that is older had another one of the same number");
	is_u64(tty_open(st.st_dev, st.st_ino + 1000000, now_ns()), (uint64_t)-1, "no such terminal");
	(void)stat("/dev/null", &st);
	is_u64(tty_open(st.st_dev, st.st_ino, now_ns()), (uint64_t)-1, "no terminal, but a device");
	return done();
}
