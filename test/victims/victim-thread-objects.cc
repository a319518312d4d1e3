// SPDX-License-Identifier: MIT
// thread_local objects that free what they hold when their thread ends: joined, detached, main.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <condition_variable>
#include <string>
#include <thread>
#include <vector>

#include "victim.h"

static std::mutex mutex;
static std::condition_variable changed;
static int nr_gone;

struct Journal {
	std::vector<std::string> pages;

	FRAME void write(int n)
	{
		pages.emplace_back(80 + n, '.');
	}
	~Journal()
	{
		std::lock_guard<std::mutex> hold_it(mutex);

		pages = {};
		nr_gone++;
		changed.notify_all();
	}
};

static thread_local Journal journal;

static void work()
{
	for (int i = 0; i < 30; i++)
		journal.write(i);
}

FRAME static void lose()
{
	hold(new int[10]);
}

int main()
{
	journal.write(1);
	for (int i = 0; i < 6; i++) {
		std::thread thread(work);

		if (i % 2)
			thread.join();
		else
			thread.detach();
	}
	{
		std::unique_lock<std::mutex> wait(mutex);

		changed.wait(wait, [] { return nr_gone == 6; });
	}
	lose();
	std::puts("6 journals closed");
	return 0;
}
