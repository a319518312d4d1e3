/* SPDX-License-Identifier: MIT */
/*
 * Allocates on stacks that no thread was made with: coroutines on the heap and in mapped memory, and
 * a signal handler on an alternate stack, at whose bottom the interrupted frames follow.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "victim.h"

enum { STACK_BYTES = 65536 };
static ucontext_t outside, inside;
static int nr_handled;

FRAME static void lose_in_coroutine(void)
{
	hold(malloc(120));
}

static void coroutine(void)
{
	for (int i = 0; i < 3; i++) {
		lose_in_coroutine();
		swapcontext(&inside, &outside);
	}
}

FRAME static void run_on(void *stack)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	for (int i = 0; i < 4; i++)
		swapcontext(&outside, &inside);
}

FRAME static void lose_in_handler(void)
{
	hold(malloc(80));
}

static void on_signal(int number)
{
	(void)number;
	lose_in_handler();
	nr_handled++;
}

FRAME static void handle_elsewhere(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	void *place = malloc(STACK_BYTES);
	stack_t alternate = { .ss_sp = place, .ss_size = STACK_BYTES };
	stack_t none = { .ss_flags = SS_DISABLE };

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 5; i++)
		raise(SIGUSR1);
	sigaltstack(&none, NULL);
	free(place);
}

int main(void)
{
	void *heap = malloc(STACK_BYTES);
	void *mapped = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	run_on(heap);
	run_on(mapped);
	munmap(mapped, STACK_BYTES);
	free(heap);
	handle_elsewhere();
	printf("handled %d\n", nr_handled);
	return 0;
}
