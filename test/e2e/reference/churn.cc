// SPDX-License-Identifier: MIT
// Four threads, and the children they fork, allocate and free in every way there is, for each other too.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t nr_slots = 4096, nr_events = 60000, nr_forks = 6;

// How a block came, which says how it must go.
enum class Way : unsigned { c, one, many, aligned };

struct Block {
	void *memory;
	Way way;
};

std::atomic<Block *> slots[nr_slots];

struct alignas(256) Wide {
	char bytes[256];
};

void release(Block *block)
{
	if (!block)
		return;
	switch (block->way) {
	case Way::c:
		free(block->memory);
		break;
	case Way::one:
		delete static_cast<std::uint64_t *>(block->memory);
		break;
	case Way::many:
		delete[] static_cast<char *>(block->memory);
		break;
	case Way::aligned:
		delete static_cast<Wide *>(block->memory);
		break;
	}
	delete block;
}

void *from_c(std::uint64_t dice, std::size_t bytes)
{
	void *memory = nullptr;

	switch (dice % 7) {
	case 0:
		return malloc(bytes);
	case 1:
		return calloc(3, bytes / 3 + 1);
	case 2:
		return realloc(malloc(bytes / 2 + 1), bytes + 1);
	case 3:
		return reallocarray(realloc(nullptr, 10), 5, bytes + 1);
	case 4:
		return posix_memalign(&memory, 128, bytes) ? nullptr : memory;
	case 5:
		return memalign(64, bytes);
	default:
		memory = malloc(bytes);
		// a reallocation that fails leaves the block as it was
		if (void *moved = realloc(memory, PTRDIFF_MAX - 4096))
			return moved;
		return memory;
	}
}

Block *allocate(std::uint64_t dice)
{
	std::size_t bytes = dice >> 20 & 63 ? dice >> 30 & 2047 : dice >> 30 & 0xfffff;

	switch (dice >> 8 & 7) {
	case 0:
		return new Block{new std::uint64_t(dice), Way::one};
	case 1:
		return new Block{new char[bytes], Way::many};
	case 2:
		return new Block{new Wide, Way::aligned};
	default:
		return new Block{from_c(dice, bytes), Way::c};
	}
}

void churn(std::uint64_t state, std::size_t nr)
{
	for (std::size_t i = 0; i < nr; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		std::uint64_t dice = state ^ state >> 29;
		release(slots[dice % nr_slots].exchange(dice >> 60 ? allocate(dice >> 4) : nullptr));
	}
}

void churn_and_fork(std::uint64_t seed)
{
	for (std::size_t i = 0; i < nr_forks; i++) {
		churn(seed * 100 + i, nr_events / nr_forks);
		pid_t pid = fork();
		if (pid == 0) {
			churn(seed, 5000);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, nullptr, 0);
	}
}

} // namespace

int main()
{
	std::vector<std::thread> threads;

	for (unsigned i = 1; i <= 4; i++)
		threads.emplace_back(churn_and_fork, i);
	for (auto &thread : threads)
		thread.join();
	std::puts("churned");
	return 0;
}
