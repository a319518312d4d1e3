/* SPDX-License-Identifier: MIT */
/* A plugin that allocates when it is loaded, frees when it is unloaded, and can be told to lose. */
#include <stdlib.h>

#include "victim.h"

void plugin_lose(void);
void *plugin_give(size_t bytes);

static void *held[12];

__attribute__((constructor)) static void plugin_open(void)
{
	for (size_t i = 0; i < 12; i++)
		held[i] = hold(malloc(400 + i));
}

FRAME void plugin_lose(void)
{
	hold(malloc(60));
}

void *plugin_give(size_t bytes)
{
	return malloc(bytes);
}

__attribute__((destructor)) static void plugin_close(void)
{
	for (size_t i = 0; i < 12; i++)
		free(held[i]);
}
