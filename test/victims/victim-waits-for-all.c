/* SPDX-License-Identifier: MIT */
/*
 * Starts two children that end with 5, and waits until it has none left: it must not be given others to
 * wait for. "subreaper" as argument: becomes one and calls itself again; "slow": becomes one and waits for
 * the end of its input first. Says "reaped N, odd N".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

FRAME static void lose(void)
{
	hold(malloc(77));
}

int main(int argc, char **argv)
{
	int nr_reaped = 0, nr_odd = 0, status;

	lose();
	if (argc > 1 && !strcmp(argv[1], "subreaper")) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		execl("/proc/self/exe", argv[0], (char *)NULL);
		return 2;
	}
	if (argc > 1 && !strcmp(argv[1], "slow")) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		puts("ready");
		fflush(stdout);
		while (getchar() >= 0)
			;
	}
	for (int i = 0; i < 2; i++) {
		if (!fork()) {
			lose();
			exit(5);
		}
	}
	while (wait(&status) > 0) {
		nr_reaped++;
		nr_odd += !WIFEXITED(status) || WEXITSTATUS(status) != 5;
	}
	printf("reaped %d, odd %d\n", nr_reaped, nr_odd);
	return 6;
}
