/* SPDX-License-Identifier: MIT */
/* Makes libc fill its own lasting memory; the program itself loses one block of 44 bytes. */
#include <dlfcn.h>
#include <grp.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "victim.h"

FRAME static void ask_locale(void)
{
	hold(setlocale(LC_ALL, "C.UTF-8"));
	hold(localeconv());
	mblen("x", 1);
}

FRAME static void ask_time(void)
{
	time_t now = 1700000000;
	char text[64];

	setenv("TZ", "Europe/Berlin", 1);
	strftime(text, sizeof(text), "%c %Z", localtime(&now));
	hold(text);
}

FRAME static void ask_users(void)
{
	hold(getpwuid(0));
	hold(getgrnam("root"));
	hold(getservbyname("http", "tcp"));
}

FRAME static void ask_loader(void)
{
	hold(dlsym(RTLD_DEFAULT, "no_such_function_here"));
	hold(dlerror());
	hold(strerror(4711));
}

static void *nothing(void *unused)
{
	return unused;
}

FRAME static void ask_threads(void)
{
	pthread_t threads[8];
	pthread_key_t keys[40];

	for (int i = 0; i < 40; i++) {
		pthread_key_create(&keys[i], NULL);
		pthread_setspecific(keys[i], &keys);
	}
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, nothing, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

FRAME static void ask_streams(void)
{
	fprintf(stderr, "%s", "");
	fwide(stdin, 1);
	printf("%s %.3f\n", "cached", 2.5);
}

FRAME static void lose(void)
{
	hold(malloc(44));
}

int main(void)
{
	ask_locale();
	ask_time();
	ask_users();
	ask_loader();
	ask_threads();
	ask_streams();
	lose();
	return 0;
}
