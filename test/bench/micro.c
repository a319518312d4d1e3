/* SPDX-License-Identifier: MIT */
/*
 * micro.c - one thing that a program does to its heap, again and again. usage: micro WHAT NR ...
 *
 * together NR THREADS   pairs of malloc and free in threads that share nothing; CPU ns a pair
 * across NR             blocks of one thread freed in another, a thousand at a time; CPU ns a free
 * own NR                the same freed where they were made; CPU ns a free
 * realloc NR            blocks made larger and smaller, most of them moved; CPU ns a call
 * threads NR            threads that allocate once, one after the other; wall us each
 * spawn NR [NAME=VALUE]... -- COMMAND...   processes one after the other; wall us each
 *
 * Prints one number. CPU time is the thread's own, so that neighbours on the machine matter less.
 */
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "test/victims/victim.h"

enum { BATCH = 1000, FRAMES = 11, MAX_THREADS = 16 };

extern char **environ;

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double cpu_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

struct job {
	void (*work)(struct job *);
	long nr;
	double ns; /* CPU time that counts */
};

/* The work some frames deep, as in real programs. */
FRAME static void below(int frames, struct job *job)
{
	if (frames > 0)
		below(frames - 1, job);
	else
		job->work(job);
	hold(NULL);
}

static void *body(void *argument)
{
	below(FRAMES, argument);
	return NULL;
}

FRAME static void do_pairs(struct job *job)
{
	double start = cpu_ns();

	for (long i = 0; i < job->nr; i++)
		free(hold(malloc(64)));
	job->ns = cpu_ns() - start;
}

static double together(long nr, int nr_threads)
{
	struct job jobs[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	double ns = 0;

	for (int i = 0; i < nr_threads; i++) {
		jobs[i] = (struct job){ do_pairs, nr, 0 };
		if (pthread_create(&threads[i], NULL, body, &jobs[i]))
			exit(1);
	}
	for (int i = 0; i < nr_threads; i++) {
		pthread_join(threads[i], NULL);
		ns += jobs[i].ns;
	}
	return ns / (double)nr / nr_threads;
}

static void *batch[BATCH];
static sem_t is_full, is_empty;

FRAME static void fill(void)
{
	for (int i = 0; i < BATCH; i++)
		batch[i] = malloc(16 + (size_t)i % 300);
}

FRAME static double empty(void)
{
	double start = cpu_ns();

	for (int i = 0; i < BATCH; i++)
		free(batch[i]);
	return cpu_ns() - start;
}

static void empty_for_other(struct job *job)
{
	for (long i = 0; i < job->nr; i++) {
		sem_wait(&is_full);
		job->ns += empty();
		sem_post(&is_empty);
	}
}

static void fill_for_other(struct job *job)
{
	for (long i = 0; i < job->nr; i++) {
		sem_wait(&is_empty);
		fill();
		sem_post(&is_full);
	}
}

static double across(long nr)
{
	struct job job = { empty_for_other, nr / BATCH, 0 }, other = { fill_for_other, nr / BATCH, 0 };
	pthread_t thread;

	sem_init(&is_full, 0, 0);
	sem_init(&is_empty, 0, 1);
	if (pthread_create(&thread, NULL, body, &job))
		exit(1);
	below(FRAMES, &other);
	pthread_join(thread, NULL);
	return job.ns / (double)(job.nr * BATCH);
}

static void fill_and_empty(struct job *job)
{
	for (long i = 0; i < job->nr; i++) {
		fill();
		job->ns += empty();
	}
}

static void do_realloc(struct job *job)
{
	double start;

	fill();
	start = cpu_ns();
	for (long i = 0; i < job->nr; i++) {
		void **block = &batch[i % BATCH];

		*block = realloc(*block, (size_t)(i * 7919 % 900) + 1);
	}
	job->ns = cpu_ns() - start;
	empty();
}

static double alone(void (*work)(struct job *), long nr, long each)
{
	struct job job = { work, nr / each, 0 };

	below(FRAMES, &job);
	return job.ns / (double)(job.nr * each);
}

static void *short_body(void *argument)
{
	free(hold(malloc(64)));
	return argument;
}

static double short_threads(long nr)
{
	double start = now_ns(CLOCK_MONOTONIC);
	pthread_t thread;

	for (long i = 0; i < nr; i++) {
		if (pthread_create(&thread, NULL, short_body, NULL))
			exit(1);
		pthread_join(thread, NULL);
	}
	return (now_ns(CLOCK_MONOTONIC) - start) / 1e3 / (double)nr;
}

static double spawn(long nr, char **words)
{
	double start;
	pid_t pid;
	int status;

	for (; *words && strcmp(*words, "--"); words++)
		putenv(*words);
	if (!*words)
		exit(2);
	start = now_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < nr; i++) {
		if (posix_spawn(&pid, words[1], NULL, NULL, words + 1, environ) || waitpid(pid, &status, 0) != pid || status)
			exit(1);
	}
	return (now_ns(CLOCK_MONOTONIC) - start) / 1e3 / (double)nr;
}

static double measure(const char *what, long nr, char **more)
{
	if (!strcmp(what, "together"))
		return together(nr, *more ? atoi(*more) % (MAX_THREADS + 1) : 1);
	if (!strcmp(what, "across"))
		return across(nr);
	if (!strcmp(what, "own"))
		return alone(fill_and_empty, nr, BATCH);
	if (!strcmp(what, "realloc"))
		return alone(do_realloc, nr, 1);
	if (!strcmp(what, "threads"))
		return short_threads(nr);
	if (!strcmp(what, "spawn"))
		return spawn(nr, more);
	fprintf(stderr, "micro: no such measure: %s\n", what);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	printf("%.3f\n", measure(argv[1], atol(argv[2]), argv + 3));
	return 0;
}
