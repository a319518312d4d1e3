/* SPDX-License-Identifier: MIT */
/*
 * network.c - keeps libdw off the network, and off the libraries that it would need there.
 *
 * When libdw has found no debug information on this machine it loads the debuginfod client, with
 * curl, TLS and some twenty more libraries, only to learn that no server is named: three quarters of
 * the time that a short report takes. It has no switch for that, but it asks for the library by
 * dlopen, and the program's own definition comes before libc's.
 */
#include "snapshot/symbols/network.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool is_allowed;

void network_init(void)
{
	const char *wish = getenv("LEAKWATCH_DEBUGINFOD");

	is_allowed = wish && !strcmp(wish, "1");
	if (!is_allowed)
		(void)unsetenv("DEBUGINFOD_URLS");
}

void *dlopen(const char *name, int flags)
{
	static const char client[] = "libdebuginfod";
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");

	if (!found || (!is_allowed && name && !strncmp(name, client, sizeof(client) - 1)))
		return NULL;
	memcpy(&real, &found, sizeof(real));
	return real(name, flags);
}
