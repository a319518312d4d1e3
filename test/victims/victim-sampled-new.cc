/* SPDX-License-Identifier: MIT */
/*
 * victim-sampled-new.cc - the same as victim-sampled.c for operators new and delete: two functions lose all, one gives
 * all back by every plain form of delete, while another thread does that too.
 */
#include <cstdlib>
#include <new>
#include <thread>

#include "victim.h"

enum { LOST = 40000, ROUNDS = 100000 };

FRAME static void lose_object()
{
	hold(new long[1]);
	hold(new long);
}

FRAME static void lose_array()
{
	hold(new char[100]);
}

FRAME static void give_back(unsigned i)
{
	char *array = static_cast<char *>(hold(new (std::nothrow) char[1 + i % 3000]));
	long *object = static_cast<long *>(hold(new long(i)));

	delete[] array;
	if (i % 2)
		delete object;
	else
		::operator delete(object);
}

static void give_all_back()
{
	for (unsigned i = 0; i < ROUNDS; i++)
		give_back(i);
}

int main()
{
	std::thread other(give_all_back);

	for (unsigned i = 0; i < LOST; i++) {
		lose_object();
		lose_array();
	}
	give_all_back();
	other.join();
	return 0;
}
