/* SPDX-License-Identifier: MIT */
/*
 * Loses 2 blocks of 50 bytes and changes where or what it is, then ends with status 4 (or waits to be killed).
 * usage: WHAT [wait]
 *   ipc     enters another IPC namespace and makes a segment there, a child keeps looking until
 *           we are gone: "kept" if the segment still holds what was written to it
 *   title   writes over all its arguments and its environment, as servers do, which then has none
 *   user    becomes user 65534
 *   server  both
 *   files   has no descriptor left
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <unistd.h>

#include "victim.h"

extern char **environ;
enum { KEY = 0x1234, SEGMENT_BYTES = 65536 };

FRAME static void lose(void)
{
	hold(malloc(50));
}

/* Reads until the parent, which holds the other end, is gone. */
static void look_later(int shmid, const int ends[2])
{
	const char *seen = "lost";
	char byte, *at;

	close(ends[1]);
	while (read(ends[0], &byte, 1) > 0)
		;
	at = shmat(shmid, NULL, SHM_RDONLY);
	if (at != (void *)-1 && !strcmp(at, "precious"))
		seen = "kept";
	shmctl(shmid, IPC_RMID, NULL);
	puts(seen);
	fflush(stdout);
	_exit(0);
}

static int enter_ipc(void)
{
	int ends[2], shmid;
	char *at;

	if (unshare(CLONE_NEWIPC))
		return 3;
	shmid = shmget(KEY, SEGMENT_BYTES, IPC_CREAT | 0600);
	at = shmat(shmid, NULL, 0);
	if (at == (void *)-1 || pipe(ends))
		return 2;
	strcpy(at, "precious");
	shmdt(at);
	if (!fork())
		look_later(shmid, ends);
	close(ends[0]);
	return 0;
}

static void write_title(char **argv)
{
	char *end = argv[0] + strlen(argv[0]);

	for (char **word = argv; *word; word++)
		end = *word + strlen(*word);
	for (char **word = environ; *word; word++)
		end = *word + strlen(*word);
	memset(argv[0], 'A', (size_t)(end - argv[0]));
	environ = NULL;
}

static void use_up_files(void)
{
	struct rlimit few = { 30, 30 };

	setrlimit(RLIMIT_NOFILE, &few);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
}

int main(int argc, char **argv)
{
	const char *what = strdup(argc > 1 ? argv[1] : "");
	int is_waiting = argc > 2, wrong = 0;

	lose();
	if (!strcmp(what, "ipc"))
		wrong = enter_ipc();
	if (!strcmp(what, "title") || !strcmp(what, "server"))
		write_title(argv);
	if (!strcmp(what, "user") || !strcmp(what, "server"))
		wrong = setgid(65534) || setuid(65534) ? 2 : 0;
	if (!strcmp(what, "files"))
		use_up_files();
	free((void *)what);
	if (wrong)
		return wrong;
	lose();
	if (is_waiting) {
		if (write(1, "ready\n", 6) == 6)
			pause();
		return 2;
	}
	return 4;
}
