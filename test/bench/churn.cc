// SPDX-License-Identifier: MIT
// Threads fill and empty a tree of vectors, some fifteen frames deep. usage: churn ROUNDS THREADS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

using Table = std::map<std::string, std::vector<long>>;

__attribute__((noinline)) static long touch(Table &table, uint64_t &seed)
{
	char name[48];

	seed = seed * UINT64_C(6364136223846793005) + 1;
	std::snprintf(name, sizeof(name), "an entry with a long name %06u", unsigned(seed >> 40) % 5000);
	auto found = table.find(name);
	if (found == table.end()) {
		table.emplace(name, std::vector<long>(1 + (seed >> 36) % 16));
		return 1;
	}
	if (seed >> 63 || found->second.size() > 150) {
		table.erase(found);
		return 2;
	}
	found->second.push_back(long(seed));
	return 3;
}

__attribute__((noinline)) static long below(Table &table, uint64_t &seed, int depth)
{
	long sum = depth ? below(table, seed, depth - 1) : touch(table, seed);

	__asm__ volatile("" : "+r"(sum) : : "memory");
	return sum;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? std::atol(argv[1]) : 100000;
	std::vector<std::thread> threads;

	for (int i = 0; i < (argc > 2 ? std::atoi(argv[2]) : 1); i++)
		threads.emplace_back([=] {
			Table table;
			uint64_t seed = uint64_t(i) * 977 + 3;

			for (long n = 0; n < rounds; n++)
				below(table, seed, 11);
		});
	for (auto &thread : threads)
		thread.join();
	return 0;
}
