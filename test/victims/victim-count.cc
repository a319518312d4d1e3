// SPDX-License-Identifier: MIT
// Prints how many calls reach the allocator in each of its phases (libvictim-probe.so counts them).
// Under LeakWatch the numbers must be the same: it never allocates. usage: PLUGIN
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

extern "C" unsigned long probe_calls();
static const char *plugin;

FRAME static void one_site()
{
	for (int i = 0; i < 1000; i++)
		free(hold(malloc(40)));
}

// every path through this tree of calls is a stack of its own
FRAME static void *left(int path, int depth);
FRAME static void *right(int path, int depth);

static void *branch(int path, int depth)
{
	if (!depth)
		return hold(malloc(24));
	return path & 1 ? left(path >> 1, depth - 1) : right(path >> 1, depth - 1);
}

FRAME static void *left(int path, int depth)
{
	return hold(branch(path, depth));
}

FRAME static void *right(int path, int depth)
{
	return hold(branch(path, depth));
}

FRAME static void many_stacks()
{
	for (int path = 0; path < 2048; path++)
		free(branch(path, 11));
}

FRAME static void moved()
{
	void *p = nullptr;

	for (size_t i = 1; i < 500; i++)
		p = hold(realloc(p, i * 100));
	free(p);
}

FRAME static void aligned()
{
	for (size_t align = 8; align < 5000; align *= 2) {
		void *p = nullptr;

		if (!posix_memalign(&p, align, 10))
			free(hold(p));
	}
}

FRAME static void objects()
{
	for (int i = 1; i < 300; i++) {
		delete static_cast<int *>(hold(new int));
		delete[] static_cast<char *>(hold(new char[i]));
	}
}

static void *body(void *)
{
	one_site();
	many_stacks();
	return nullptr;
}

FRAME static void threads()
{
	pthread_t all[12];

	for (auto &thread : all)
		pthread_create(&thread, nullptr, body, nullptr);
	for (auto &thread : all)
		pthread_join(thread, nullptr);
}

FRAME static void plugins()
{
	for (int i = 0; i < 20; i++) {
		void *handle = dlopen(plugin, RTLD_NOW);

		dlclose(handle);
	}
}

FRAME static void child()
{
	pid_t pid = fork();

	if (!pid) {
		unsigned long before = probe_calls();

		one_site();
		many_stacks();
		_exit((probe_calls() - before) / 100);
	}
	int status = 0;

	waitpid(pid, &status, 0);
	std::printf("child %d\n", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)();
	} phases[] = {{"one site", one_site}, {"many stacks", many_stacks}, {"moved", moved},
			{"aligned", aligned}, {"objects", objects}, {"threads", threads},
			{"plugins", plugins}, {"child", child}};
	static char room[4096];

	setvbuf(stdout, room, _IOLBF, sizeof(room)); // printing must not allocate
	plugin = argc > 1 ? argv[1] : "";
	for (auto &phase : phases) {
		unsigned long before = probe_calls();

		phase.run();
		std::printf("%s: %lu calls\n", phase.name, probe_calls() - before);
	}
	return 0;
}
