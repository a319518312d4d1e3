// SPDX-License-Identifier: MIT
// Constructors that throw: the language frees what new had taken. Forms of new and delete that match.
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "victim.h"

static int nr_made;

struct Picky {
	std::string text = "long enough to live on the heap, surely";

	Picky()
	{
		if (++nr_made % 4 == 0)
			throw std::runtime_error("no more");
	}
};

struct alignas(128) Wide {
	char bytes[256];
};

FRAME static int make_one()
{
	try {
		std::unique_ptr<Picky> one(new Picky);

		return 0;
	} catch (const std::runtime_error &) {
		return 1;
	}
}

FRAME static int make_row()
{
	try {
		delete[] new Picky[5];
		return 0;
	} catch (const std::runtime_error &) {
		return 1;
	}
}

FRAME static void make_wide()
{
	delete static_cast<Wide *>(hold(new Wide));
	delete[] static_cast<Wide *>(hold(new Wide[3]));
	delete static_cast<Wide *>(hold(new (std::nothrow) Wide));
}

FRAME static void lose_wide()
{
	hold(new Wide);
}

FRAME static void lose_row()
{
	hold(new double[9]);
}

int main()
{
	int nr_thrown = 0;

	for (int i = 0; i < 12; i++)
		nr_thrown += make_one();
	for (int i = 0; i < 6; i++)
		nr_thrown += make_row();
	make_wide();
	lose_wide();
	lose_row();
	std::printf("thrown %d\n", nr_thrown);
	return 0;
}
