// SPDX-License-Identifier: MIT
/*
 * sites.cc - what a site of leakwatch.h costs: the same pairs with and without macros, turn and turn about.
 *
 * With sites.c. Run it under the library (LD_PRELOAD) and without. A round does each kind of pair the same number of
 * times, one batch after the other; the median over the rounds is what counts, so that a neighbour on
 * the machine does not. Built for a program and for a library (-fPIC), at the same optimisation.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "preload/leakwatch.h"

template <class T> static T *hide(T *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#define BATCH(name, ...)                                                                           \
	__attribute__((noinline)) static void name(int nr)                                         \
	{                                                                                          \
		for (int i = 0; i < nr; i++)                                                       \
			__VA_ARGS__;                                                               \
	}

extern "C" void c_plain(int nr);
extern "C" void c_sites(int nr);
BATCH(mixed_plain, (free)(hide((malloc)(40))))
BATCH(mixed_sites, free(hide(malloc(40))))
BATCH(cxx_plain, delete hide(new long))
BATCH(cxx_sites, LEAKWATCH_DELETE hide(LEAKWATCH_NEW long))

static double time_ns(void (*batch)(int), int nr)
{
	timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	batch(nr);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / nr;
}

static double median(std::vector<double> values)
{
	std::nth_element(values.begin(), values.begin() + (long)values.size() / 2, values.end());
	return values[values.size() / 2];
}

static void compare(const char *name, void (*plain)(int), void (*sites)(int), int nr_rounds)
{
	std::vector<double> without, with;
	const int nr = 20000;

	for (int i = 0; i < nr_rounds; i++) {
		without.push_back(time_ns(plain, nr));
		with.push_back(time_ns(sites, nr));
	}
	printf("%s: a pair %.1f ns, with macros %.1f ns: a site costs %.2f ns\n", name, median(without),
			median(with), (median(with) - median(without)) / 2);
}

int main(int argc, char **argv)
{
	int nr_rounds = argc > 1 ? atoi(argv[1]) : 200;

	compare("malloc and free", c_plain, c_sites, nr_rounds);
	compare("malloc and free in C++", mixed_plain, mixed_sites, nr_rounds);
	compare("new and delete", cxx_plain, cxx_sites, nr_rounds);
}
