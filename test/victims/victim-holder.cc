// SPDX-License-Identifier: MIT
/*
 * victim-holder.cc - blocks held in known ways: by a global variable through two other blocks, by the stack of a
 * thread, by what the program asked to ignore, at the end of a long list, by memory that is not recorded; and an object that is lost.
 */
#include "preload/leakwatch.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "test/victims/victim.h"

struct Session {
	virtual ~Session() = default;
	long values[5] = {};
};

struct Table {
	char room[16] = {};
	Session **all = nullptr;
};

static Table *the_table;
static void *volatile from_nowhere;
static void *volatile the_list;

FRAME static void add_sessions()
{
	the_table = new Table;
	the_table->all = static_cast<Session **>(calloc(10, sizeof(*the_table->all)));
	for (int i = 0; i < 10; i++)
		the_table->all[i] = new Session;
}

/* Each block of the list says by where its pointer is which one it is. The innermost is the first to be allocated. */
FRAME static void hold_by_list()
{
	the_list = calloc(1, 333);
	for (int i = 39; i >= 0; i--) {
		void **block = static_cast<void **>(calloc(50, sizeof(*block)));

		block[i] = the_list;
		the_list = block;
	}
}

FRAME static void lose_session()
{
	(void)hold(new Session);
}

FRAME static void *make_kept()
{
	return calloc(1, 555);
}

/* The only pointer is in a block that is itself lost, but meant to stay. */
FRAME static void keep_by_ignored()
{
	void **holder = static_cast<void **>(malloc(64));

	*holder = make_kept();
	leakwatch_ignore(hold(holder));
}

/* The only pointer is in a block that is not recorded; it may be anybody's. */
FRAME static void keep_by_paused()
{
	leakwatch_pause();
	void **holder = static_cast<void **>(malloc(64));
	leakwatch_resume();
	*holder = make_kept();
	from_nowhere = holder;
}

FRAME static void *hold_on_stack(void *ready)
{
	void *volatile here[4];
	struct timespec pause = {0, 10000000};

	here[2] = malloc(777);
	for (__atomic_store_n(static_cast<int *>(ready), 1, __ATOMIC_RELEASE);;)
		nanosleep(&pause, nullptr);
	return here[2];
}

FRAME static void wipe()
{
	volatile char room[8192];

	for (volatile char &byte : room)
		byte = 0;
}

int main(int argc, char **argv)
{
	struct pollfd stop = {0, POLLIN, 0};
	pthread_t thread;
	int ready = 0;

	add_sessions();
	hold_by_list();
	lose_session();
	keep_by_ignored();
	if (argc > 1 && !strcmp(argv[1], "paused"))
		keep_by_paused();
	wipe();
	(void)pthread_create(&thread, nullptr, hold_on_stack, &ready);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		;
	puts("ready");
	fflush(stdout);
	while (poll(&stop, 1, 10) == 0)
		free(hold(malloc(10)));
	return 0;
}
