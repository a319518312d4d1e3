// SPDX-License-Identifier: MIT
// A C++ plugin for a program in C: throws and catches bad_alloc, and loses a little.
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "victim.h"

FRAME static void plugin_lose()
{
	hold(new char[23]);
}

extern "C" int plugin_run(int *nr_null);
extern "C" int plugin_run(int *nr_null)
{
	int nr_caught = 0;

	try {
		hold(::operator new(opaque(PTRDIFF_MAX - 100)));
	} catch (const std::bad_alloc &) {
		nr_caught++;
	}
	try {
		hold(new long[opaque(PTRDIFF_MAX / 8 - 100)]);
	} catch (const std::bad_alloc &) {
		nr_caught++;
	}
	try {
		std::string text(opaque(PTRDIFF_MAX - 100), 'x');
	} catch (const std::exception &) {
		nr_caught++;
	}
	*nr_null += !(new (std::nothrow) char[opaque(PTRDIFF_MAX - 100)]);
	std::vector<int> given_back(1000);
	plugin_lose();
	return nr_caught;
}
