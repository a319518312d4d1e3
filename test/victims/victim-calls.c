/* SPDX-License-Identifier: MIT */
/*
 * victim-calls.c - threads that wait in system calls of every kind, none of which may end before its time. Then each is sent
 * a signal of the program's own, which is to interrupt it as ever. usage: victim-calls busy|idle|loop; with loop there is
 * one thread, which computes until it is sent SIGUSR1. One block is lost, one kept.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

static int queue, semaphores, files, pipe_fds[2];
static void *volatile kept;

FRAME static void lose(void)
{
	(void)hold(malloc(333));
}

FRAME static void keep(void)
{
	kept = malloc(80);
}

static int in_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(files, &event, 1, -1);
}

static int in_nanosleep(void)
{
	struct timespec pause = { .tv_sec = 1000 };

	return nanosleep(&pause, NULL);
}

static int in_poll(void)
{
	struct pollfd none = { -1, 0, 0 };

	return poll(&none, 1, 1000000);
}

static int in_select(void)
{
	struct timeval wait = { .tv_sec = 1000 };

	return select(0, NULL, NULL, NULL, &wait);
}

static int in_semop(void)
{
	struct sembuf take = { 0, -1, 0 };

	return semop(semaphores, &take, 1);
}

static int in_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} message;

	return (int)msgrcv(queue, &message, sizeof(message.text), 0, 0);
}

static int in_pause(void)
{
	return pause();
}

static int in_sigsuspend(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	return sigsuspend(&none);
}

static int in_read(void)
{
	char byte;

	return (int)read(pipe_fds[0], &byte, 1);
}

static int (*const calls[])(void) = { in_epoll, in_nanosleep, in_poll, in_select, in_semop, in_msgrcv, in_pause,
	in_sigsuspend, in_read };

enum { NR_CALLS = sizeof(calls) / sizeof(calls[0]) };

static struct waiter {
	pthread_t thread;
	int (*call)(void);
	volatile int is_over, error;
} waiters[NR_CALLS];

static void *run(void *context)
{
	struct waiter *waiter = context;

	waiter->error = waiter->call() < 0 ? errno : 0;
	waiter->is_over = 1;
	return NULL;
}

static volatile sig_atomic_t has_signal;

static void on_signal(int number)
{
	(void)number;
	has_signal = 1;
}

/* In registers of all kinds, whole numbers and not. */
FRAME static void compute(void)
{
	unsigned long nr = 0, sum = 0;
	double halves = 0;

	(void)puts("ready");
	(void)fflush(stdout);
	for (; !has_signal; nr = (nr + 1) & 0xffffff) {
		sum = nr ? sum + nr : 0;
		halves = nr ? halves + 0.5 : 0;
	}
	nr = nr ? nr - 1 : 0xffffff;
	(void)puts(sum == nr * (nr + 1) / 2 && halves == (double)nr / 2 ? "computed well" : "computed ill");
}

static int count_over(void)
{
	int nr = 0;

	for (int i = 0; i < NR_CALLS; i++)
		nr += waiters[i].is_over;
	return nr;
}

FRAME static void wipe(void)
{
	volatile char room[8192];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static void wait_for_input(int is_busy)
{
	struct pollfd stop = { 0, POLLIN, 0 };

	while (poll(&stop, 1, is_busy ? 1 : -1) == 0)
		free(hold(malloc(10)));
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	const struct timespec pause = { .tv_nsec = 1000000 };
	int nr_early, nr_told = 0;

	files = epoll_create1(0);
	(void)pipe(pipe_fds);
	(void)sigaction(SIGUSR1, &action, NULL);
	lose();
	keep();
	if (argc > 1 && !strcmp(argv[1], "loop")) {
		wipe();
		compute();
		return 0;
	}
	queue = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	for (int i = 0; i < NR_CALLS; i++) {
		waiters[i].call = calls[i];
		(void)pthread_create(&waiters[i].thread, NULL, run, &waiters[i]);
	}
	wipe();
	(void)puts("ready");
	(void)fflush(stdout);
	wait_for_input(argc > 1 && !strcmp(argv[1], "busy"));
	nr_early = count_over();
	for (int i = 0; i < NR_CALLS; i++) {
		while (!waiters[i].is_over) { /* it may have been on its way into the call */
			(void)pthread_kill(waiters[i].thread, SIGUSR1);
			(void)nanosleep(&pause, NULL);
		}
		nr_told += waiters[i].error == EINTR;
	}
	printf("%d over too soon, %d interrupted by a signal\n", nr_early, nr_told);
	(void)msgctl(queue, IPC_RMID, NULL);
	(void)semctl(semaphores, 0, IPC_RMID);
	return 0;
}
