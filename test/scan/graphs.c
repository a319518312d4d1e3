/* SPDX-License-Identifier: MIT */
/*
 * graphs.c - builds random object graphs whose lost part is known, then ends: truth for the scanner.
 *
 * usage: graphs SEED GRAPHS [exit|_exit|threads]. What is to be reachable is allocated by make_live(),
 * what is to be lost by make_lost(), so a report tells for each which verdicts it got. The reachable
 * blocks hang on roots of every kind: data, bss, stacks, thread-local storage (static, dynamic,
 * keys), private and shared mappings next to the allocator's, read-only pages; and are pointed to
 * in every way that counts: start, interior, end, tags low and high, at odd places of packed structures.
 *
 * The program itself keeps every address only in disguise (its complement), and wipes its stack before
 * it ends, so that what is lost is lost: no stale copy but those the allocator makes.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

enum {
	MAX_BLOCKS = 200000,
	PER_GRAPH = 40,
	MAX_BYTES_AT = 12, /* usual sizes up to 4 KiB, some up to 1 MiB */
	SLOTS = 4,	   /* pointers a block may hold */
	NR_BSS = 4096,
	NR_DATA = 64,
	NR_TLS = 64,
	NR_STACK = 64,
	NR_PAGES = 64,
	NR_THREADS = 4,
};

struct block {
	uintptr_t disguised; /* complement of the address */
	uint32_t bytes;
	uint8_t is_lost;
	uint8_t nr_used; /* slots */
};

static struct block *blocks; /* in a mapping of its own */
static uint32_t nr_blocks;
static uint64_t state;

static volatile uintptr_t bss[NR_BSS];
static volatile uintptr_t data[NR_DATA] = { 1 };
static __thread volatile uintptr_t tls[NR_TLS];
static uintptr_t *pages, *shared, *readonly;
static pthread_key_t keys[40];
static pthread_barrier_t ready;
static uint32_t used_bss, used_data = 1, used_tls, used_pages, used_shared, used_readonly, used_keys;

static uint32_t roll(uint32_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 16) % sides);
}

static NOINLINE void *make_live(size_t bytes)
{
	return malloc(bytes);
}

static NOINLINE void *make_lost(size_t bytes)
{
	return malloc(bytes);
}

static char *address_of(const struct block *block)
{
	return (char *)~block->disguised;
}

/* A way to write a pointer to a block that a program could undo. */
static uintptr_t pointer_to(const struct block *block)
{
	uintptr_t start = (uintptr_t)address_of(block);

	switch (roll(8)) {
	case 0:
		return start + roll(block->bytes); /* interior */
	case 1:
		return start | (1 + roll(7)); /* low tag */
	case 2:
		return start | (uintptr_t)(1 + roll(255)) << 56; /* high tag */
	case 3:
		return start + 8; /* behind an array cookie; blocks have at least 32 bytes */
	case 4:
		return start | (uintptr_t)0xfffb << 48; /* NaN box */
	case 5:
		return block->bytes % 16 == 8 ? start + block->bytes : start; /* one past the end */
	default:
		return start;
	}
}

/* Slots lie anywhere in the block, some at odd multiples of 4. */
static void link_to(struct block *from, const struct block *to)
{
	uint32_t words = from->bytes / 8, at;

	if (from->nr_used >= SLOTS)
		return;
	at = words / SLOTS * from->nr_used++;
	if (words / SLOTS >= 2 && roll(4) == 0) {
		uintptr_t pointer = pointer_to(to);

		memcpy(address_of(from) + at * 8 + 4, &pointer, sizeof(pointer));
		return;
	}
	((uintptr_t *)(void *)address_of(from))[at] = pointer_to(to);
}

static uint32_t pick_bytes(void)
{
	uint32_t bytes = 32 + roll(1u << (5 + roll(MAX_BYTES_AT - 4)));

	return roll(400) == 0 ? 100000 + roll(1000000) : bytes;
}

static struct block *add(int is_lost)
{
	struct block *block = &blocks[nr_blocks++];
	void *at;

	block->bytes = pick_bytes();
	block->is_lost = (uint8_t)is_lost;
	at = is_lost ? make_lost(block->bytes) : make_live(block->bytes);
	memset(at, roll(3) == 0 ? 0 : 0x5a, block->bytes);
	block->disguised = ~(uintptr_t)at;
	return block;
}

/* Hangs a block on a root of a random kind. stack: of the caller, outlives everything. */
static void root(const struct block *block, uintptr_t *stack, uint32_t *used_stack)
{
	uintptr_t pointer = pointer_to(block);

	switch (roll(9)) {
	case 0:
		if (used_data < NR_DATA) {
			data[used_data++] = pointer;
			return;
		}
		break;
	case 1:
		if (used_tls < NR_TLS) {
			tls[used_tls++] = pointer;
			return;
		}
		break;
	case 2:
		if (*used_stack < NR_STACK) {
			stack[(*used_stack)++] = pointer;
			return;
		}
		break;
	case 3:
		if (used_pages < NR_PAGES * 512) {
			pages[used_pages] = pointer;
			used_pages += 37;
			return;
		}
		break;
	case 4:
		if (used_shared < NR_PAGES * 512) {
			shared[used_shared] = pointer;
			used_shared += 37;
			return;
		}
		break;
	case 5:
		if (used_readonly < NR_PAGES * 512) {
			readonly[used_readonly] = pointer;
			used_readonly += 37;
			return;
		}
		break;
	case 6:
		if (used_keys < 40) {
			(void)pthread_setspecific(keys[used_keys++], (void *)pointer);
			return;
		}
		break;
	default:
		break;
	}
	if (used_bss < NR_BSS)
		bss[used_bss++] = pointer;
	else
		abort();
}

static NOINLINE void build(uintptr_t *stack, uint32_t *used_stack)
{
	uint32_t first = nr_blocks, nr = 2 + roll(PER_GRAPH);

	for (uint32_t i = 0; i < nr; i++) {
		struct block *block = add(roll(2));

		if (block->is_lost) {
			/* of lost ones: chains, trees, rings; a lost block may point to a live one */
			for (uint32_t k = roll(3); k > 0; k--) {
				struct block *other = &blocks[first + roll(i + 1)];

				if (other->is_lost)
					link_to(other, block);
			}
			if (roll(3) == 0)
				link_to(block, &blocks[first + roll(i + 1)]);
			continue;
		}
		/* a live one hangs on a root, or on a live one before it with room */
		for (uint32_t tries = 0; tries < 4; tries++) {
			struct block *other = &blocks[first + roll(i + 1)];

			if (other != block && !other->is_lost && other->nr_used < SLOTS) {
				link_to(other, block);
				goto linked;
			}
		}
		root(block, stack, used_stack);
	linked:
		if (roll(4) == 0) { /* and back: rings */
			struct block *other = &blocks[first + roll(i + 1)];

			if (!other->is_lost)
				link_to(block, other);
		}
	}
}

/* Frees and allocates, so that the allocator's lists hold old addresses. */
static NOINLINE void churn(void)
{
	void *some[64];

	for (int i = 0; i < 64; i++)
		some[i] = malloc(32 + roll(2000));
	for (int i = 0; i < 64; i++)
		free(some[i]);
	memset(some, 0, sizeof(some));
	__asm__ volatile("" : : "r"(some) : "memory");
}

static NOINLINE void wipe_stack(void)
{
	volatile char room[65536];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static void make_roots(void)
{
	const int rw = PROT_READ | PROT_WRITE;

	blocks = mmap(NULL, MAX_BLOCKS * sizeof(*blocks), rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* large blocks on both sides, which the kernel merges with the mapping between them */
	bss[used_bss++] = (uintptr_t)malloc(300000);
	pages = mmap(NULL, NR_PAGES * 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bss[used_bss++] = (uintptr_t)malloc(300000);
	readonly = mmap(NULL, NR_PAGES * 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bss[used_bss++] = (uintptr_t)malloc(300000);
	shared = mmap(NULL, NR_PAGES * 4096, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 40; i++)
		(void)pthread_key_create(&keys[i], NULL);
}

static NOINLINE void work(uint32_t nr_graphs, uintptr_t *stack, uint32_t *used_stack)
{
	for (uint32_t i = 0; i < nr_graphs && nr_blocks + PER_GRAPH + 2 < MAX_BLOCKS && used_bss + PER_GRAPH < NR_BSS; i++) {
		build(stack, used_stack);
		if (i % 8 == 0)
			churn();
	}
}

struct job {
	uint64_t seed;
	uint32_t nr_graphs;
	int stays;
};

static NOINLINE void *build_and_stay(const struct job *job)
{
	volatile uintptr_t stack[NR_STACK] = { 0 };
	uint32_t used_stack = job->stays ? 0 : NR_STACK;

	used_tls = job->stays ? 0 : NR_TLS;
	used_keys = job->stays ? 0 : 40;
	work(job->nr_graphs, (uintptr_t *)stack, &used_stack);
	wipe_stack();
	(void)pthread_barrier_wait(&ready);
	while (job->stays)
		(void)pause();
	return NULL;
}

/*
 * One after the other: the generator's state is not shared. Some end, some stay alive. The stack may be one that
 * an ended thread left, with its words in the gaps of the frames to come.
 */
static void *run_thread(void *context)
{
	wipe_stack();
	return build_and_stay(context);
}

static NOINLINE void run_threads(uint64_t seed, uint32_t nr_graphs)
{
	static struct job jobs[NR_THREADS];

	(void)pthread_barrier_init(&ready, NULL, 2);
	for (int i = 0; i < NR_THREADS; i++) {
		pthread_t thread;

		jobs[i] = (struct job){ seed, nr_graphs, i % 2 };
		(void)pthread_create(&thread, NULL, run_thread, &jobs[i]);
		(void)pthread_barrier_wait(&ready);
		if (!jobs[i].stays)
			(void)pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "exit";
	uint32_t nr_graphs = argc > 2 ? (uint32_t)atoi(argv[2]) : 10, used_stack = 0, nr_lost = 0;
	volatile uintptr_t stack[NR_STACK] = { 0 };

	state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 0x9e3779b97f4a7c15 + 1;
	make_roots();
	work(strcmp(how, "threads") ? nr_graphs : nr_graphs / 5 + 1, (uintptr_t *)stack, &used_stack);
	if (!strcmp(how, "threads"))
		run_threads(state, nr_graphs / 5 + 1);
	(void)mprotect(readonly, NR_PAGES * 4096, PROT_READ);
	for (uint32_t i = 0; i < nr_blocks; i++)
		nr_lost += blocks[i].is_lost;
	printf("%u %u\n", nr_blocks - nr_lost, nr_lost);
	(void)fflush(stdout);
	wipe_stack();
	if (!strcmp(how, "_exit"))
		_exit(0);
	exit(stack[0] == 1); /* main's frame is there until the end */
}
