/* SPDX-License-Identifier: MIT */
/* unit-watch.c - holding processes that live, die, become zombies and lose their main thread. */
#include "cleaner/watch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/share/region.h"
#include "test/unit/tap.h"

static void *wait_for_ever(void *unused)
{
	(void)unused;
	for (;;)
		(void)pause();
	return NULL;
}

enum kind { PAUSES, EXITS, LOSES_MAIN };

static pid_t start(enum kind kind)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	if (kind == EXITS)
		_exit(7);
	if (kind == LOSES_MAIN) {
		(void)pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	(void)wait_for_ever(NULL);
	_exit(1);
}

/* Waits until the process is a zombie, which stays: nobody asks for its status. */
static void wait_for_zombie(pid_t pid)
{
	siginfo_t info;

	(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

static uint64_t ticks_of(pid_t pid)
{
	uint64_t ticks = 0;
	int32_t ppid;

	(void)lw_region_proc_stat(pid, &ticks, &ppid);
	return ticks;
}

static void test_ends(const char *how)
{
	struct watch watch;
	int status = 0;
	pid_t pid = start(PAUSES);

	ok(watch_open(&watch, pid, ticks_of(pid)), "%s: a living process is held", how);
	ok(watch_is_alive(&watch), "%s: it lives", how);
	ok(watch_has_memory(&watch), "%s: and has memory", how);
	(void)kill(pid, SIGKILL);
	wait_for_zombie(pid);
	ok(!watch_is_alive(&watch), "%s: a zombie does not", how);
	ok(!watch_has_memory(&watch), "%s: and has none", how);
	ok(watch_status(&watch, &status) && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		"%s: a zombie's signal is known", how);
	(void)waitpid(pid, NULL, 0);
	ok(!watch_is_alive(&watch), "%s: a reaped one is gone", how);
	watch_close(&watch);

	pid = start(EXITS);
	wait_for_zombie(pid);
	(void)watch_open(&watch, pid, 0);
	ok(watch_status(&watch, &status) && WIFEXITED(status) && WEXITSTATUS(status) == 7,
		"%s: a zombie's status is known", how);
	watch_close(&watch);
	(void)waitpid(pid, NULL, 0);
	ok(!watch_open(&watch, pid, 0), "%s: nobody of that number", how);
}

static void test_reused(const char *how)
{
	struct watch watch;
	pid_t pid = start(PAUSES);

	ok(!watch_open(&watch, pid, ticks_of(pid) - 1) || !watch_is_alive(&watch),
		"%s: one of another time is not the one that was meant", how);
	watch_close(&watch);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void test_lost_main(const char *how)
{
	struct watch watch;
	pid_t pid = start(LOSES_MAIN);
	char path[64], text[256] = "";
	bool is_zombie = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 500 && !is_zombie; i++) {
		int fd = open(path, O_RDONLY);
		ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		text[got > 0 ? got : 0] = '\0';
		is_zombie = strstr(text, ") Z ");
		(void)close(fd);
		(void)usleep(2000);
	}
	ok(is_zombie, "%s: a main thread that has left looks like a zombie", how);
	ok(watch_open(&watch, pid, ticks_of(pid)) && watch_is_alive(&watch), "%s: but it lives", how);
	watch_close(&watch);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void test_all(const char *how)
{
	test_ends(how);
	test_reused(how);
	test_lost_main(how);
}

int main(void)
{
	struct rlimit limit;
	struct watch watch;

	test_all("as it is");
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 18; /* enough for a few files, not for the spare ones and a pidfd */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	ok(watch_open(&watch, getpid(), 0) && watch.fd < 0, "few descriptors: none is taken");
	test_all("without a pidfd");
	ok(!watch_has_other_root(getpid()), "our own root is ours");
	return done();
}
