/* SPDX-License-Identifier: MIT */
/*
 * Runs before everything: from .preinit_array it registers 90 exit handlers (libc allocates for the
 * 33rd, with its lock held) and takes a block for each, which the handler frees. One is forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "victim.h"

enum { NR = 90 };
static void *blocks[NR];
static int nr_blocks, early_errno;

static void release_one(void)
{
	free(blocks[--nr_blocks]);
	if (!nr_blocks && write(1, "all released\n", 13) != 13)
		_exit(3);
}

FRAME static void take_early(void)
{
	blocks[nr_blocks] = hold(malloc(200 + (size_t)nr_blocks));
	nr_blocks++;
}

FRAME static void forget_early(void)
{
	hold(calloc(3, 37));
}

static void before_all(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	for (int i = 0; i < NR; i++) {
		take_early();
		if (atexit(release_one))
			_exit(2);
	}
	forget_early();
	early_errno = errno;
}

__attribute__((section(".preinit_array"), used)) static void (*const entry)(
		int, char **, char **) = before_all;

int main(void)
{
	return errno || early_errno;
}
