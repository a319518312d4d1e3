/* SPDX-License-Identifier: MIT */
/*
 * Takes every system call from itself but those its own malloc and its end need, then loses 6 blocks
 * of 30 bytes on stacks of many depths, and ends with status 7.
 * usage: ASKED ANSWER [thread]
 *   ASKED   how seccomp is asked for: prctl, syscall (of prctl), seccomp (syscall of it)
 *   ANSWER  what a call that is not allowed gets: kill, errno (EPERM), count (SIGSYS, whose handler
 *           counts; "refused N" is said at the end), brk (kill; and of malloc's calls only brk is allowed)
 *   thread  the sandbox is that of a thread, which ends the process
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

static const char *asked, *answer;
static volatile sig_atomic_t nr_refused, last_refused;

static void on_refusal(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)unused;
	nr_refused++;
	last_refused = info->si_syscall;
}

static int allow(struct sock_filter *rules, int nr, int number)
{
	rules[nr++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
	rules[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return nr;
}

static void enter(void)
{
	static const int needed[] = { SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_brk };
	static const int of_malloc[] = { SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise };
	unsigned refusal = !strcmp(answer, "errno") ? SECCOMP_RET_ERRNO | EPERM
		: !strcmp(answer, "count") ? SECCOMP_RET_TRAP
					   : SECCOMP_RET_KILL_PROCESS;
	struct sigaction counting = { .sa_sigaction = on_refusal, .sa_flags = SA_SIGINFO };
	struct sock_filter rules[32];
	struct sock_fprog program = { .filter = rules };
	long failed;
	int nr = 0;

	rules[nr++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		nr = allow(rules, nr, needed[i]);
	for (size_t i = 0; strcmp(answer, "brk") && i < sizeof(of_malloc) / sizeof(of_malloc[0]); i++)
		nr = allow(rules, nr, of_malloc[i]);
	rules[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refusal);
	program.len = (unsigned short)nr;
	sigaction(SIGSYS, &counting, NULL);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30); /* a thread's heap asks in /proc before it shrinks */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(asked, "prctl"))
		failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	else if (!strcmp(asked, "syscall"))
		failed = syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	else
		failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	if (failed)
		_exit(9);
}

FRAME static void lose(void)
{
	hold(malloc(30));
}

FRAME static void deep(int depth)
{
	char here[2000];

	hold(here);
	if (depth)
		deep(depth - 1);
	else
		lose();
	hold(here);
}

FRAME static void work(void)
{
	void *kept[3000];

	for (int i = 0; i < 6; i++)
		deep(i * 7); /* deeper than any stack before it */
	for (size_t i = 0; i < 3000; i++)
		kept[i] = hold(malloc(i % 700 + 1));
	for (size_t i = 0; i < 3000; i++)
		free(hold(realloc(kept[i], i % 900 + 1)));
	free(hold(malloc(3000000)));
}

/* Without stdio, which asks the kernel about its files. */
static void say_refused(void)
{
	char line[] = "refused 0, the last was call 000\n";

	line[8] += nr_refused > 9 ? 9 : nr_refused;
	if (!nr_refused)
		strcpy(line + 9, "\n");
	else
		for (int i = 31, rest = last_refused; i > 28; i--, rest /= 10)
			line[i] += rest % 10;
	if (write(1, line, strlen(line)) != (ssize_t)strlen(line))
		_exit(8);
}

static void *in_thread(void *unused)
{
	free(hold(malloc(10)));
	enter();
	work();
	say_refused();
	exit(7);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	asked = argv[1];
	answer = argv[2];
	free(hold(malloc(100)));
	if (argc > 3) {
		if (pthread_create(&thread, NULL, in_thread, NULL))
			return 2;
		pthread_join(thread, NULL);
		return 1;
	}
	enter();
	work();
	say_refused();
	return 7;
}
