/* SPDX-License-Identifier: MIT */
/*
 * stress-tables.c - the two tables that threads change without a lock, changed by many at once.
 *
 * Leaves of the block table: all threads come to each new one at the same moment, so that they race
 * to make it; each must find its own blocks in it afterwards, and a visitor who is always looking must
 * see only blocks that somebody made. Rules: threads ask for the rules of thousands of places in libc
 * while the table fills, grows and is cleared; each answer must be what the unwind tables say.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <link.h>
#include <pthread.h>

#include "preload/unwind/rules.h"

enum { NR_THREADS = 6, NR_LEAVES = 150, NR_EACH = 40, NR_PLACES = 3000, NR_ASKED = 60000, NR_CLEARED = 40 };

static uint64_t nr_wrong;
static uint32_t nr_running;

static void start_threads(pthread_t *threads, void *(*body)(void *))
{
	lw_store(&nr_running, NR_THREADS);
	for (uintptr_t i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, body, (void *)i))
			abort();
	}
}

static void join_threads(pthread_t *threads)
{
	for (unsigned i = 0; i < NR_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

static void leave(void)
{
	(void)__atomic_fetch_sub(&nr_running, 1, __ATOMIC_RELEASE);
}

/* ---- leaves ---- */

static pthread_barrier_t next_leaf;

/* Everything about a block follows from its address. */
static uint32_t site_of(uintptr_t address)
{
	return (uint32_t)(address >> 4) % 1000000;
}

static uint64_t bytes_of(uintptr_t address)
{
	return address >> 5 & 4095;
}

static void insert_and_find(uintptr_t leaf, uintptr_t thread)
{
	struct lw_block block, stale;
	bool is_stale;

	for (uintptr_t i = 0; i < NR_EACH; i++) {
		uintptr_t address = leaf + (i * NR_THREADS + thread) * 32;

		block = (struct lw_block){ .site = site_of(address), .bytes = bytes_of(address) };
		if (!lw_blocks_insert(lw_hide((const void *)address), &block, &is_stale, &stale) || is_stale)
			lw_add(&nr_wrong, 1);
	}
	for (uintptr_t i = 0; i < NR_EACH; i++) {
		uintptr_t address = leaf + (i * NR_THREADS + thread) * 32;

		if (!lw_blocks_find(address, &block) || block.site != site_of(address))
			lw_add(&nr_wrong, 1);
		if (i % 4 == 0 && !lw_blocks_remove(address, &block))
			lw_add(&nr_wrong, 1);
	}
}

static void *fill_leaves(void *thread)
{
	for (uintptr_t leaf = 0; leaf < NR_LEAVES; leaf++) {
		(void)pthread_barrier_wait(&next_leaf);
		insert_and_find((leaf + 1) << LW_LEAF_BITS, (uintptr_t)thread);
	}
	leave();
	return NULL;
}

static void look(void *context, uintptr_t address, const struct lw_block *block)
{
	uint64_t *nr = context;

	++*nr;
	if (address >> LW_LEAF_BITS <= NR_LEAVES &&
			(block->site != site_of(address) || block->bytes != bytes_of(address)))
		lw_add(&nr_wrong, 1);
}

static void test_leaves(void)
{
	pthread_t threads[NR_THREADS];
	uint64_t nr_seen = 0;

	nr_wrong = 0;
	(void)pthread_barrier_init(&next_leaf, NULL, NR_THREADS);
	start_threads(threads, fill_leaves);
	while (__atomic_load_n(&nr_running, __ATOMIC_ACQUIRE))
		lw_blocks_visit(look, &nr_seen);
	join_threads(threads);
	is_u64(nr_wrong, 0, "%d threads make %d leaves together, and one looks on (%" PRIu64 " blocks seen)",
			NR_THREADS, NR_LEAVES, nr_seen);
	nr_seen = 0;
	lw_blocks_visit(look, &nr_seen);
	is_u64(nr_seen, NR_LEAVES * NR_THREADS * NR_EACH * 3 / 4, "all that is left of it is seen");
}

/* ---- rules ---- */

static struct {
	uintptr_t pc;
	uint32_t rule;
} wanted[NR_PLACES];

static int find_code(struct dl_phdr_info *info, size_t bytes, void *context)
{
	uintptr_t *range = context;

	(void)bytes;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t end = start + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_flags & PF_X && (uintptr_t)&qsort - start < end - start) {
			range[0] = start;
			range[1] = end;
		}
	}
	return 0;
}

static void *ask_rules(void *thread)
{
	uint64_t state = (uintptr_t)thread + 1;

	for (unsigned i = 0; i < NR_ASKED; i++) {
		unsigned place;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		place = (unsigned)((state >> 33) % NR_PLACES);
		if (lw_rules_find(wanted[place].pc) != wanted[place].rule)
			lw_add(&nr_wrong, 1);
	}
	leave();
	return NULL;
}

static void test_rules(void)
{
	pthread_t threads[NR_THREADS];
	uintptr_t range[2] = { 0, 0 };
	unsigned nr_cleared = 0;

	nr_wrong = 0;
	(void)dl_iterate_phdr(find_code, range);
	if (!range[0]) /* a sanitizer's qsort */
		range[0] = (uintptr_t)&test_rules & ~UINT64_C(0xfff), range[1] = range[0] + 4096;
	for (unsigned i = 0; i < NR_PLACES; i++) {
		wanted[i].pc = range[0] + 1 + (range[1] - range[0] - 1) * i / NR_PLACES;
		wanted[i].rule = lw_cfi_pack(wanted[i].pc, false);
	}
	start_threads(threads, ask_rules);
	while (__atomic_load_n(&nr_running, __ATOMIC_ACQUIRE)) {
		if (nr_cleared++ < NR_CLEARED)
			lw_rules_clear();
	}
	join_threads(threads);
	is_u64(nr_wrong, 0, "%d threads ask for the rules of %d places while the table is cleared and grows",
			NR_THREADS, NR_PLACES);
}

int main(void)
{
	tables_start();
	test_leaves();
	test_rules();
	return done();
}
