/* SPDX-License-Identifier: MIT */
/*
 * start.c - runs one command and writes "CPU-S WALL-S PEAK-KIB STATUS" to a file.
 * usage: start FILE LIMIT-S [NAME=VALUE]... -- COMMAND...
 *
 * A small program of its own, because the peak memory that the kernel tells of a child is never less
 * than that of whoever forked it. The command runs in a process group of its own, which is killed
 * after LIMIT-S seconds, or when we are to end; the settings are for it alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile pid_t child;

static void on_alarm(int number)
{
	(void)number;
	kill(-child, SIGKILL);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noreturn)) void run(char **words)
{
	setpgid(0, 0);
	for (; *words && strcmp(*words, "--"); words++)
		putenv(*words);
	if (*words)
		execvp(words[1], words + 1);
	perror("start");
	_exit(127);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double began = now();
	int status = 0;
	FILE *out;

	if (argc < 5)
		return 2;
	child = fork();
	if (child < 0)
		return 1;
	if (!child)
		run(argv + 3);
	setpgid(child, child);
	signal(SIGALRM, on_alarm);
	signal(SIGTERM, on_alarm);
	signal(SIGINT, on_alarm);
	alarm((unsigned)atoi(argv[2]));
	while (wait4(child, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 1;
	out = fopen(argv[1], "w");
	if (!out)
		return 1;
	fprintf(out, "%.6f %.6f %ld %d\n", seconds(usage.ru_utime) + seconds(usage.ru_stime), now() - began,
			usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return fclose(out) != 0;
}
