/* SPDX-License-Identifier: MIT */
/*
 * Correct programs of kinds that are easily taken for something else; usage: victim-odd MODE [PLUGIN].
 *   jump	   a timer's handler jumps out of whatever it interrupts, our code too; then a block is lost
 *   deepbind	   a plugin that is bound to the C library gives a block that the program releases
 *   page-end	   a hand-made stack ends where its memory ends, and a tail call to malloc() is its last act
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "victim.h"

#ifdef __clang__
#define WITH_TAIL_CALLS
#else
#define WITH_TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#endif

enum { PAGE_BYTES = 4096, NR_JUMPS = 60, TICK_US = 3000 };

static sigjmp_buf out_of_it;
static volatile sig_atomic_t is_armed;
static jmp_buf back;

static void on_alarm(int number)
{
	(void)number;
	if (is_armed) {
		is_armed = 0;
		siglongjmp(out_of_it, 1);
	}
}

void lose(void);

FRAME void lose(void)
{
	hold(malloc(12345));
}

static void jump(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval ticks = { { 0, TICK_US }, { 0, TICK_US } }, none = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &ticks, NULL);
	for (volatile int i = 0; i < NR_JUMPS; i++) {
		if (!sigsetjmp(out_of_it, 1)) {
			is_armed = 1;
			for (;;)
				free(hold(calloc(1, 24)));
		}
	}
	setitimer(ITIMER_REAL, &none, NULL);
	lose();
}

static int deepbind(const char *plugin)
{
	void *handle = dlopen(plugin, RTLD_NOW | RTLD_DEEPBIND);
	void *(*give)(size_t) = NULL, *found = handle ? dlsym(handle, "plugin_give") : NULL;

	if (!found)
		return 1;
	memcpy(&give, &found, sizeof(give));
	free(hold(malloc(100)));
	free(hold(give(100))); /* the same address, most likely */
	return 0;
}

WITH_TAIL_CALLS __attribute__((noinline)) static void *last_act(void)
{
	return malloc(40);
}

__attribute__((noinline, noreturn)) static void leave(void)
{
	longjmp(back, 1);
}

static int page_end(void)
{
	char *memory = mmap(NULL, 8 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void **end = (void **)(void *)(memory + 7 * PAGE_BYTES);

	if (memory == MAP_FAILED || mprotect(end, PAGE_BYTES, PROT_NONE))
		return 1;
	if (!setjmp(back)) {
		void (*next)(void) = leave;
		void *(*first)(void) = last_act;

		memcpy(end - 1, &next, sizeof(next));
		__asm__ volatile("mov %0, %%rsp\n\tjmp *%1" : : "r"(end - 1), "r"(first) : "memory");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int error = 0;

	if (!strcmp(mode, "jump"))
		jump();
	else if (!strcmp(mode, "deepbind") && argc > 2)
		error = deepbind(argv[2]);
	else if (!strcmp(mode, "page-end"))
		error = page_end();
	else
		return 2;
	puts("done");
	return error;
}
