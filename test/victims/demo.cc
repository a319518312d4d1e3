// SPDX-License-Identifier: MIT
/*
 * demo.cc - a small address book that leaks in three ways; `test/demo.sh` shows what is said of it.
 *
 * 1. lookup() copies a name with strdup and loses the copy: the allocation itself is inside libc.
 * 2. remember() grows a history that nobody ever empties; each entry hangs on the one before.
 * 3. make_pair() ties two cards to each other and forgets both.
 * Everything else it allocates, some thousand blocks, is freed, and must not be named.
 */
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

struct Card {
	char name[48];
	Card *partner;
};

struct Visit {
	int number;
	Visit *before;
};

class Book
{
	std::map<int, std::string> entries_;
	Visit *history_ = nullptr;

public:
	void add(int number, const std::string &name)
	{
		entries_[number] = name;
	}
	size_t lookup(int number)
	{
		const char *copy = strdup(entries_.at(number).c_str());

		remember(number);
		return strlen(copy);
	}
	__attribute__((noinline)) void remember(int number)
	{
		history_ = new Visit{number, history_};
	}
};

__attribute__((noinline)) static void make_pair(const char *one, const char *other)
{
	Card *left = new Card{}, *right = new Card{};

	std::strcpy(left->name, one);
	std::strcpy(right->name, other);
	left->partner = right;
	right->partner = left;
}

int main()
{
	Book book;
	size_t letters = 0;

	for (int number = 0; number < 1000; number++)
		book.add(number, "subscriber with a long name, number " + std::to_string(number));
	for (int number = 0; number < 40; number++)
		letters += book.lookup(number * 7);
	make_pair("Ada", "Charles");
	std::printf("demo: %zu letters looked up\n", letters);
	return 0;
}
