/* SPDX-License-Identifier: MIT */
/*
 * Loses 3 blocks of 64 bytes, takes something from itself, says "ready", waits for the end of its input, and
 * returns 7. usage: victim-poor HOW [FOLDER]
 *   files	  no descriptor can be opened any more, by a limit that cannot be raised
 *   small	  no file may grow any more, from the end of its input on
 *   full	  all descriptors that the limit allows are open
 *   closed	  stderr is closed
 *   reused	  another file is open in its place
 *   hidden	  it may not be traced, nor looked at in /proc
 *   chroot	  its root is FOLDER
 *   memory	  there is no address space for anything new; then it frees the blocks, and loses others
 *   dry	  the same, but it is given back at the end
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "victim.h"

enum { HEAP_BYTES = 96 << 20, NR_BLOCKS = 3, FEW_FDS = 16, NR_DRY = 100 };

static void *blocks[NR_BLOCKS];

FRAME static void *lose(size_t bytes)
{
	return hold(malloc(bytes));
}

static int limit(int which, rlim_t value)
{
	struct rlimit both = { value, value };

	return setrlimit(which, &both);
}

static int open_all(void)
{
	int error = limit(RLIMIT_NOFILE, FEW_FDS);

	while (open("/dev/null", O_RDONLY) >= 0)
		;
	return error;
}

static int reuse(void)
{
	close(2);
	return open("data", O_RDWR | O_CREAT, 0600) != 2 || write(2, "mine\n", 5) != 5;
}

/* All of a heap that was large is free, and the address space is used up. */
static int take_memory(bool is_given_back)
{
	struct rlimit none = { 0, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	char *piece;

	(void)mallopt(M_MMAP_THRESHOLD, 2 * HEAP_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 4 * HEAP_BYTES);
	piece = hold(malloc(HEAP_BYTES));
	free(piece);
	if (!piece || setrlimit(RLIMIT_AS, &none))
		return 1;
	for (int i = 0; i < NR_BLOCKS; i++)
		free(blocks[i]);
	/* where no block was before */
	piece = hold(malloc(HEAP_BYTES / 2));
	for (int i = 0; i < NR_DRY; i++)
		lose(1 << 10);
	free(piece);
	return is_given_back && setrlimit(RLIMIT_AS, &all);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int error = 0;
	char byte;

	bool is_kept = !strcmp(how, "memory") || !strcmp(how, "dry");

	for (volatile int i = 0; i < NR_BLOCKS; i++) {
		blocks[i] = lose(64);
		if (!is_kept)
			blocks[i] = NULL;
	}
	if (!strcmp(how, "files"))
		error = limit(RLIMIT_NOFILE, 0);
	else if (!strcmp(how, "full"))
		error = open_all();
	else if (!strcmp(how, "closed"))
		error = close(2);
	else if (!strcmp(how, "reused"))
		error = reuse();
	else if (!strcmp(how, "hidden"))
		error = prctl(PR_SET_DUMPABLE, 0);
	else if (!strcmp(how, "chroot") && argc > 2)
		error = chroot(argv[2]) || chdir("/");
	else if (is_kept)
		error = take_memory(!strcmp(how, "dry"));
	else if (strcmp(how, "none") && strcmp(how, "small"))
		return 2;
	if (error || write(1, "ready\n", 6) != 6)
		return 3;
	while (read(0, &byte, 1) > 0)
		;
	if (!strcmp(how, "small") && limit(RLIMIT_FSIZE, 0))
		return 3;
	return 7;
}
