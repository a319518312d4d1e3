/* SPDX-License-Identifier: MIT */
/*
 * unit-count.c - however many threads allocate and free, in whatever order they come and go, the sum
 * of all rows of counters is the truth, and threads that are gone leave no memory behind.
 *
 * Blocks are places in an array: a thread allocates its own and frees whatever another thread has
 * put into a shared slot. Each kind of allocation comes from one function, so that it is one site.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/base/mem.h"
#include "preload/share/emit.h"

enum {
	NR_KINDS = 6,		/* LW_KIND_MALLOC to LW_KIND_NEW_ARRAY */
	NR_THREADS = 64,
	NR_EVENTS = 6000,	/* of each thread */
	NR_OWN = 512,		/* places of each thread */
	NR_CROWD = 400,		/* more than there are rows */
#ifdef __SANITIZE_THREAD__ /* which needs milliseconds for a thread */
	NR_SHORT = 1000,
#else
	NR_SHORT = 5000,
#endif
	NR_SLOTS = 256,
	MAX_PLACES = (NR_CROWD + NR_THREADS) * NR_OWN,
};

static const uintptr_t first_place = UINT64_C(0x20000000000);

/* What is at a place; written by whoever owns the block. */
static struct place {
	uint32_t kind; /* 0: free */
	uint64_t bytes;
} places[MAX_PLACES];

static struct lw_count truth[LW_NR_KINDS]; /* atomic adds */
static uint32_t slots[NR_SLOTS];	   /* places handed from thread to thread, plus one */

static uintptr_t address_of(uint32_t place)
{
	return first_place + (uintptr_t)place * 4096;
}

#define ALLOCATOR(kind)                                                                            \
	__attribute__((noinline)) static void allocate_##kind(uintptr_t address, uint64_t bytes)   \
	{                                                                                          \
		LW_CALLER(call);                                                               \
		lw_track_alloc(lw_hide((void *)address), bytes, kind, call);                              \
	}
ALLOCATOR(LW_KIND_MALLOC)
ALLOCATOR(LW_KIND_CALLOC)
ALLOCATOR(LW_KIND_REALLOC)
ALLOCATOR(LW_KIND_ALIGNED)
ALLOCATOR(LW_KIND_NEW)
ALLOCATOR(LW_KIND_NEW_ARRAY)

static void allocate(uint32_t place, uint32_t kind, uint64_t bytes)
{
	static void (*const allocators[])(uintptr_t, uint64_t) = { NULL, allocate_LW_KIND_MALLOC,
		allocate_LW_KIND_CALLOC, allocate_LW_KIND_REALLOC, allocate_LW_KIND_ALIGNED,
		allocate_LW_KIND_NEW, allocate_LW_KIND_NEW_ARRAY };

	places[place].bytes = bytes;
	lw_add(&truth[kind].alloc_bytes, bytes);
	lw_add(&truth[kind].alloc_blocks, 1);
	allocators[kind](address_of(place), bytes);
	lw_store_release(&places[place].kind, kind);
}

__attribute__((noinline)) static void release(uint32_t place)
{
	uint32_t kind = lw_load_acquire(&places[place].kind);
	enum lw_kind how = kind == LW_KIND_NEW ? LW_KIND_DELETE
			 : kind == LW_KIND_NEW_ARRAY ? LW_KIND_DELETE_ARRAY : LW_KIND_FREE;
	LW_CALLER(call);

	lw_add(&truth[kind].freed_bytes, places[place].bytes);
	lw_add(&truth[kind].freed_blocks, 1);
	lw_track_free((void *)address_of(place), how, call);
	lw_store_release(&places[place].kind, 0);
}

static void add(struct lw_count *sum, const struct lw_count *more)
{
	sum->alloc_bytes += more->alloc_bytes;
	sum->alloc_blocks += more->alloc_blocks;
	sum->freed_bytes += more->freed_bytes;
	sum->freed_blocks += more->freed_blocks;
}

/* The sum of all rows for one kind of site, once as readers find it and once by hand. */
static struct lw_count sum_of(uint32_t kind, bool *is_same)
{
	struct lw_count by_hand = { 0 }, by_emit = { 0 }, one;

	for (uint32_t id = 0; id < lw_box->nr_sites; id++) {
		if (lw_box_site(id)->kind != kind)
			continue;
		one = lw_emit_site_count(lw_box, lw_box->total_bytes, id);
		add(&by_emit, &one);
		for (uint32_t row = 0; row < LW_MAX_ROWS; row++) {
			const uint32_t *dir = (const uint32_t *)(lw_box_row(row) + 1);
			uint32_t chunk = dir[id / LW_CHUNK_SITES];

			if (chunk)
				add(&by_hand, (const struct lw_count *)(lw_hot.chunks) +
						(size_t)chunk * LW_CHUNK_SITES + id % LW_CHUNK_SITES);
		}
	}
	*is_same &= !memcmp(&by_hand, &by_emit, sizeof(by_hand));
	return by_emit;
}

struct live {
	uint64_t nr, nr_wrong;
};

static void check_live(void *context, uintptr_t address, const struct lw_block *block)
{
	struct live *live = context;
	const struct place *place = &places[(address - first_place) / 4096];

	live->nr++;
	live->nr_wrong += place->kind != lw_box_site(block->site)->kind || place->bytes != block->bytes;
}

static void check_truth(const char *after)
{
	struct live live = { 0 };
	uint64_t nr_live = 0;
	bool is_same = true, is_true = true;

	for (uint32_t kind = LW_KIND_MALLOC; kind <= NR_KINDS; kind++) {
		struct lw_count sum = sum_of(kind, &is_same);

		nr_live += truth[kind].alloc_blocks - truth[kind].freed_blocks;
		if (memcmp(&sum, &truth[kind], sizeof(sum))) {
			printf("# kind %u: %" PRIu64 "/%" PRIu64 " allocated, %" PRIu64 "/%" PRIu64 " freed\n", kind,
					sum.alloc_blocks, truth[kind].alloc_blocks, sum.freed_blocks,
					truth[kind].freed_blocks);
			is_true = false;
		}
	}
	ok(is_true, "%s: bytes and blocks, allocated and freed, are exact", after);
	ok(is_same, "%s: as readers sum them, too", after);
	lw_blocks_visit(check_live, &live);
	ok(live.nr == nr_live && !live.nr_wrong, "%s: the block table holds the %" PRIu64 " live blocks",
			after, nr_live);
}

static uint32_t nr_used_rows(void)
{
	uint32_t nr = 0;

	for (uint32_t row = 1; row < LW_MAX_ROWS; row++)
		nr += lw_load(&lw_box_row(row)->state) == LW_ROW_USED;
	return nr;
}

/* ---- many threads ---- */

static pthread_barrier_t all_here;

static void churn(uint32_t first, uint32_t nr_events)
{
	uint64_t state = first + 1;

	for (uint32_t i = 0; i < nr_events; i++) {
		uint32_t place = first + i % NR_OWN, taken;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (!lw_load_acquire(&places[place].kind)) {
			allocate(place, 1 + (uint32_t)(state >> 40) % NR_KINDS, state >> 60 ? state >> 50 : state >> 44);
			taken = __atomic_exchange_n(&slots[(state >> 33) % NR_SLOTS], place + 1, __ATOMIC_ACQ_REL);
			if (taken)
				release(taken - 1);
		}
	}
}

static void *churn_alone(void *number)
{
	churn((uint32_t)(uintptr_t)number * NR_OWN, NR_EVENTS);
	return NULL;
}

static void *churn_in_crowd(void *number)
{
	uint32_t first = (NR_THREADS + (uint32_t)(uintptr_t)number) * NR_OWN;

	churn(first, 1);
	(void)pthread_barrier_wait(&all_here);
	churn(first, 200);
	(void)pthread_barrier_wait(&all_here); /* nobody goes before all are done */
	return NULL;
}

static void run(uint32_t nr, void *(*body)(void *))
{
	static pthread_t threads[NR_CROWD];
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 256 << 10);
	for (uintptr_t i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], &attr, body, (void *)i))
			abort();
	}
	for (uint32_t i = 0; i < nr; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_attr_destroy(&attr);
}

static void test_threads(void)
{
	run(NR_THREADS, churn_alone);
	check_truth("64 threads");
	(void)pthread_barrier_init(&all_here, NULL, NR_CROWD);
	run(NR_CROWD, churn_in_crowd);
	is_u64(lw_box->nr_rows, LW_MAX_ROWS, "400 threads at once take all rows");
	check_truth("400 threads");
	is_u64(nr_used_rows(), 1, "their rows are free again");
}

static void *churn_shortly(void *number)
{
	churn((uint32_t)(uintptr_t)number % NR_THREADS * NR_OWN, 20);
	return NULL;
}

static void test_short_threads(void)
{
	uint64_t nr_chunks = 0, bytes = 0;
	pthread_t thread;

	for (uintptr_t i = 0; i < NR_SHORT; i++) {
		if (i == 100) {
			nr_chunks = lw_box->nr_chunks;
			bytes = lw_mem_used_bytes();
		}
		if (pthread_create(&thread, NULL, churn_shortly, (void *)i))
			abort();
		(void)pthread_join(thread, NULL);
	}
	check_truth("thousands of threads, one after another");
	ok(lw_box->nr_chunks == nr_chunks && lw_mem_used_bytes() == bytes, "they take no more memory than 100");
}

/* ---- the end of threads ---- */

/* So many that one is an allocation for sure: a thread's first one in the last round of destructors is never given back. */
enum { LATE_EVENTS = 100 };

static pthread_key_t late_key;
static uint32_t late_first_round; /* destructor rounds before the first event */

static void be_late(void *value)
{
	uintptr_t round = (uintptr_t)value >> 32, number = (uintptr_t)value & UINT32_MAX;

	if (round >= lw_load(&late_first_round))
		churn((uint32_t)number % NR_THREADS * NR_OWN, LATE_EVENTS);
	(void)pthread_setspecific(late_key, (void *)((round + 1) << 32 | number));
}

static void *end_late(void *number)
{
	(void)pthread_setspecific(late_key, (void *)(UINT64_C(1) << 32 | (uintptr_t)number));
	if (!lw_load(&late_first_round))
		churn((uint32_t)(uintptr_t)number % NR_THREADS * NR_OWN, LATE_EVENTS);
	return NULL;
}

__attribute__((unused)) static void test_late(void)
{
	uint64_t bytes;

	(void)pthread_key_create(&late_key, be_late);
	run(40, end_late);
	check_truth("events in destructors of keys");
	lw_store(&late_first_round, 1);
	run(40, end_late);
	lw_store(&late_first_round, 3);
	run(40, end_late);
	check_truth("first events in destructors of keys");
	bytes = lw_mem_used_bytes();
	for (unsigned i = 0; i < 10; i++)
		run(40, end_late);
	check_truth("400 of them");
	is_u64(nr_used_rows(), 1, "none of them keeps a row");
	is_u64(lw_mem_used_bytes(), bytes, "or memory");
	(void)pthread_key_delete(late_key);
}

int main(void)
{
	tables_start();
	test_threads();
	test_short_threads();
#ifdef __SANITIZE_THREAD__
	ok(true, "destructors of keys # SKIP ThreadSanitizer ends a thread before they run");
#else
	test_late();
#endif
	is_u64(lw_box->dropped[LW_DROP_COUNTERS] + lw_box->dropped[LW_DROP_BLOCKS] +
			lw_box->dropped[LW_DROP_STALE], 0, "nothing was dropped");
	is_u64(lw_box->nr_events, 0, "and no release was wrong");
	return done();
}
