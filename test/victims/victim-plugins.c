/* SPDX-License-Identifier: MIT */
/*
 * Two threads load and unload a plugin again and again while two others allocate. Three times the
 * plugin loses a block, which must carry its name although it is gone at the end. usage: PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "victim.h"

static const char *plugin;
static int stop, nr_loads;

static void *churn(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		free(hold(strdup("while libraries come and go")));
	return unused;
}

static void *load(void *lose)
{
	for (int i = 0; i < 60; i++) {
		void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
		void *function = handle ? dlsym(handle, "plugin_lose") : NULL;
		void (*plugin_lose)(void);

		if (!function)
			exit(3);
		memcpy(&plugin_lose, &function, sizeof(function));
		if (lose && i % 20 == 7)
			plugin_lose();
		if (dlclose(handle))
			exit(4);
		__atomic_add_fetch(&nr_loads, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	if (argc < 2)
		return 2;
	plugin = argv[1];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, i < 2 ? load : churn, i == 0 ? &stop : NULL))
			return 2;
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		pthread_join(threads[i], NULL);
	}
	printf("loads %d\n", nr_loads);
	return 0;
}
