/* SPDX-License-Identifier: MIT */
/* A program in C, without libstdc++, that loads a C++ plugin by RTLD_LOCAL four times. usage: PLUGIN */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "victim.h"

FRAME static int use(const char *path, int *nr_null)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *function;
	int (*run)(int *), nr_caught;

	if (!handle)
		return -100;
	function = dlsym(handle, "plugin_run");
	memcpy(&run, &function, sizeof(run));
	nr_caught = run(nr_null);
	dlclose(handle);
	return nr_caught;
}

int main(int argc, char **argv)
{
	int nr_caught = 0, nr_null = 0;

	for (int i = 0; argc > 1 && i < 4; i++)
		nr_caught += use(argv[1], &nr_null);
	printf("caught %d null %d\n", nr_caught, nr_null);
	return 0;
}
