// SPDX-License-Identifier: MIT
// operator new finds no memory; the handler leaves by throwing, by a long jump, or makes room.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "victim.h"

static jmp_buf back;
static int nr_asked;

struct gave_up : std::bad_alloc {
};

static void throw_out()
{
	throw gave_up();
}

static void jump_out()
{
	longjmp(back, 1);
}

static void give_up_later()
{
	if (++nr_asked == 3)
		std::set_new_handler(nullptr);
}

FRAME static void ask()
{
	hold(::operator new(opaque(PTRDIFF_MAX - 100)));
}

FRAME static void ask_for_many()
{
	hold(new char[opaque(PTRDIFF_MAX - 100)]);
}

FRAME static void ask_aligned()
{
	hold(::operator new(opaque(PTRDIFF_MAX - 100), std::align_val_t(64)));
}

FRAME static void ask_quietly(int &nr_null)
{
	nr_null += !::operator new(opaque(PTRDIFF_MAX - 100), std::nothrow);
	nr_null += !::operator new[](opaque(PTRDIFF_MAX - 100), std::align_val_t(32), std::nothrow);
}

FRAME static void lose()
{
	hold(new short[7]);
}

int main()
{
	void (*const asks[])() = {ask, ask_for_many, ask_aligned};
	static int nr_thrown, nr_jumped; // static: a long jump may clobber what is in registers
	int nr_null = 0;

	for (auto one : asks) {
		std::set_new_handler(throw_out);
		try {
			one();
		} catch (const gave_up &) {
			nr_thrown++;
		}
		lose();
	}
	for (int i = 0; i < 3; i++) {
		std::set_new_handler(jump_out);
		if (setjmp(back))
			nr_jumped++;
		else
			ask();
		lose();
	}
	std::set_new_handler(give_up_later);
	try {
		ask();
	} catch (const std::bad_alloc &) {
		nr_thrown++;
	}
	ask_quietly(nr_null);
	lose();
	std::printf("thrown %d jumped %d asked %d null %d\n", nr_thrown, nr_jumped, nr_asked, nr_null);
	return 0;
}
