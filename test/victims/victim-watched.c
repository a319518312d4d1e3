/* SPDX-License-Identifier: MIT */
/*
 * victim-watched.c - programs that are odd to watch: victim-watched spin | locks FILE | threads N | execs N |
 * drop | ends HOW. All say "ready" and go on until their input has something or ends, then end with 7.
 *
 * "spin" runs without allocating; "locks" holds an fcntl lock on FILE, and says at its end whether it still
 * does; "threads" has N of them come and go; "execs" becomes itself again N times; "drop" gives up its rights; "ends" ends by exit, _exit,
 * quick_exit, abort, or after an exec that failed.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

enum { STACK_BYTES = 64 << 10 };

static int is_over(int wait_ms)
{
	struct pollfd input = {0, POLLIN, 0};

	return poll(&input, 1, wait_ms) > 0;
}

FRAME static void allocate(void)
{
	hold(malloc(opaque(100)));
	free(hold(malloc(opaque(300))));
}

FRAME static void at_the_top(void)
{
	allocate();
	(void)hold(NULL);
}

static void *come_and_go(void *unused)
{
	(void)unused;
	allocate();
	usleep(20000);
	return NULL;
}

static void churn_threads(int nr)
{
	pthread_t *threads = malloc((size_t)nr * sizeof(*threads));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	while (!is_over(0)) {
		int nr_made = 0;

		while (nr_made < nr && !pthread_create(&threads[nr_made], &small, come_and_go, NULL))
			nr_made++;
		while (nr_made)
			pthread_join(threads[--nr_made], NULL);
	}
	free(threads);
}

/* Asked by a child, for which it is somebody else's. */
static int is_locked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int status = 0;
	pid_t child = fork();

	if (!child)
		_exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static int hold_lock(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fcntl(fd, F_SETLK, &lock))
		return 1;
	while (!is_over(1))
		allocate();
	return is_locked(fd) ? 7 : 2;
}

static void end_by(const char *how)
{
	if (!strcmp(how, "_exit"))
		_exit(7);
	if (!strcmp(how, "quick_exit"))
		quick_exit(7);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "exec"))
		execl("/nowhere", "nowhere", (char *)0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int nr = argc > 2 ? atoi(argv[2]) : 0;

	allocate();
	if (!strcmp(what, "drop") && (setgid(65534) || setuid(65534)))
		return 1;
	if (strcmp(what, "execs") || argc == 3)
		puts("ready");
	fflush(stdout);
	if (!strcmp(what, "spin"))
		while (!is_over(0))
			;
	if (!strcmp(what, "locks") && argc > 2)
		return hold_lock(argv[2]);
	if (!strcmp(what, "threads"))
		churn_threads(nr);
	if (!strcmp(what, "execs") && nr) {
		char rest[16];

		for (int i = 0; i < 30 && !is_over(1); i++)
			allocate();
		snprintf(rest, sizeof(rest), "%d", nr - 1);
		execl("/proc/self/exe", argv[0], what, rest, "again", (char *)0);
	}
	while (!is_over(1))
		at_the_top();
	if (!strcmp(what, "ends") && argc > 2)
		end_by(argv[2]);
	return 7;
}
