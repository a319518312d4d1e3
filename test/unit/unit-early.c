/* SPDX-License-Identifier: MIT */
/* unit-early.c - the bootstrap arena: bounds, alignment, reuse of the last block, threads. */
#include "preload/base/early.h"

#include <errno.h>
#include <pthread.h>

#include "test/unit/tap.h"

enum { NR_THREADS = 8, NR_BLOCKS = 400 };

static bool is_inside(const void *ptr, size_t bytes)
{
	return lw_early_owns(ptr) && (!bytes || lw_early_owns((const char *)ptr + bytes - 1));
}

static void test_basic(void)
{
	char *a = lw_early_malloc(1), *b = lw_early_malloc(0), *c = lw_early_malloc(100);
	char on_stack;

	ok(a && b && c && a != b && b != c, "blocks of 1, 0 and 100 bytes are three addresses");
	ok(is_inside(a, 1) && is_inside(c, 100), "they lie in the arena");
	ok(lw_early_usable_size(a) >= 1 && lw_early_usable_size(c) >= 100, "and have their size");
	ok((uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0 && (uintptr_t)c % 16 == 0,
		"aligned to 16");
	ok(!lw_early_owns(NULL) && !lw_early_owns(&on_stack) && !lw_early_owns((void *)-1),
		"nothing else is");
	ok(!lw_early_owns(lw_early_arena - 1) && !lw_early_owns(lw_early_arena + LW_EARLY_BYTES) &&
			lw_early_owns(lw_early_arena + LW_EARLY_BYTES - 1),
		"the edges");
	memset(c, 0x5a, 100);
	lw_early_free(c);
	ok(lw_early_malloc(100) == c, "the last block is given back and used again");
	lw_early_free(a);
	ok(lw_early_malloc(1) != a, "another one is not");
	lw_early_free(lw_early_arena + 8);
	lw_early_free(lw_early_arena);
	lw_early_free(lw_early_arena + LW_EARLY_BYTES - 16);
	is_u64(lw_early_usable_size(lw_early_arena + LW_EARLY_BYTES - 16), 0,
		"pointers never handed out are harmless");
}

static void test_calloc(void)
{
	char *p = lw_early_malloc(256);
	bool is_zero = true;

	memset(p, 0xff, 256);
	lw_early_free(p);
	p = lw_early_calloc(16, 16);
	for (int i = 0; i < 256; i++)
		is_zero &= !p[i];
	ok(is_zero, "calloc clears memory that was used before");
	errno = 0;
	ok(!lw_early_calloc(SIZE_MAX / 2 + 1, 2) && errno == ENOMEM,
		"an overflowing product is refused");
	ok(!lw_early_calloc((size_t)1 << 32, (size_t)1 << 32), "also one that wraps to 0");
}

static void test_align(void)
{
	for (size_t align = 1; align <= LW_EARLY_MAX_ALIGN; align *= 2) {
		char *p = lw_early_memalign(align, align + 1);

		ok(p && (uintptr_t)p % align == 0 && is_inside(p, align + 1), "aligned to %zu",
			align);
		lw_early_free(p);
	}
	ok(!lw_early_memalign(8192, 1), "more than a page is refused");
	ok(!lw_early_memalign(48, 1), "and what is no power of two");
}

static void test_realloc(void)
{
	char *p = lw_early_realloc(NULL, 10), *q;

	strcpy(p, "123456789");
	ok(lw_early_realloc(p, 5) == p, "smaller stays in place");
	q = lw_early_realloc(p, 1000);
	ok(q && q != p && !strcmp(q, "123456789"), "larger moves with its bytes");
	errno = 0;
	ok(!lw_early_realloc(q, LW_EARLY_BYTES) && errno == ENOMEM && !strcmp(q, "123456789"),
		"refused: the old block stands");
	ok(!lw_early_realloc(q, 0), "0 bytes frees");
}

static void test_full(void)
{
	uint64_t refused = lw_early_nr_refused();
	size_t used = lw_early_used_bytes(), nr = 0;

	ok(!lw_early_malloc(SIZE_MAX) && !lw_early_malloc(LW_EARLY_BYTES), "too much is refused");
	is_u64(lw_early_nr_refused(), refused + 2, "and counted");
	is_u64(lw_early_used_bytes(), used, "and takes nothing from the rest");
	while (lw_early_malloc(1000))
		nr++;
	is_u64(nr, (LW_EARLY_BYTES - used) / (1008 + 16),
		"then blocks of 1000 bytes fit, with a head each");
	ok(lw_early_used_bytes() <= LW_EARLY_BYTES, "never past the end");
	while (lw_early_malloc(1))
		;
	ok(lw_early_used_bytes() + 32 > LW_EARLY_BYTES, "small ones fill it up");
}

static uint32_t *blocks[NR_THREADS][NR_BLOCKS];

static void *fill(void *arg)
{
	uintptr_t me = (uintptr_t)arg;

	for (unsigned i = 0; i < NR_BLOCKS; i++) {
		uint32_t *keep = lw_early_malloc(4), *drop = lw_early_malloc(4);

		lw_early_free(drop);
		if (keep)
			*keep = (uint32_t)(me << 16 | i);
		blocks[me][i] = keep;
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	bool is_whole = true;

	for (uintptr_t t = 0; t < NR_THREADS; t++)
		pthread_create(&threads[t], NULL, fill, (void *)t);
	for (int t = 0; t < NR_THREADS; t++)
		pthread_join(threads[t], NULL);
	for (uint32_t t = 0; t < NR_THREADS; t++)
		for (uint32_t i = 0; i < NR_BLOCKS; i++)
			is_whole &= blocks[t][i] && *blocks[t][i] == (t << 16 | i);
	ok(is_whole, "%d threads allocate and free at once, no block is given twice", NR_THREADS);
}

int main(void)
{
	test_basic();
	test_calloc();
	test_align();
	test_realloc();
	test_threads();
	test_full();
	return done();
}
