/* SPDX-License-Identifier: MIT */
/*
 * unit-events.c - a wrong release is kept once per kind and pair of sites, and counted from then on,
 * from any number of threads; when there is no more room that is counted.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <pthread.h>

#include "preload/record/events.h"

enum { NR_THREADS = 6, NR_DISTINCT = 50, NR_ROUNDS = 400 };

static uint32_t nr_first[NR_DISTINCT];

/* True: it is new. */
static bool add(enum lw_event_what what, uint32_t alloc_site, uint32_t free_site, uint64_t bytes, uint64_t expected)
{
	struct lw_event event = { .what = what, .alloc_site = alloc_site, .free_site = free_site, .bytes = bytes,
		.expected = expected };

	return lw_events_add(&event) >= 0;
}

static void *add_many(void *unused)
{
	for (uint32_t i = 0; i < NR_DISTINCT * NR_ROUNDS; i++) {
		uint32_t which = i * 7 % NR_DISTINCT;

		if (add(LW_EVENT_MISMATCH, which, which + 1, 64 + which, 0))
			lw_add(&nr_first[which], 1);
	}
	return unused;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	bool is_good = true;

	for (unsigned i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, add_many, NULL))
			abort();
	}
	for (unsigned i = 0; i < NR_THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	is_u64(lw_box->nr_events, NR_DISTINCT, "each pair of sites is kept once");
	for (uint32_t i = 0; i < lw_box->nr_events; i++) {
		const struct lw_event *event = lw_box_event(i);

		is_good &= event->is_ready && event->count == NR_THREADS * NR_ROUNDS &&
			   event->free_site == event->alloc_site + 1 && event->bytes == 64 + event->alloc_site;
		is_good &= nr_first[event->alloc_site] == 1;
	}
	ok(is_good, "and counted exactly, and told as new once");
}

static void test_distinct(void)
{
	uint32_t before = lw_box->nr_events;

	ok(add(LW_EVENT_SIZE_MISMATCH, 0, 1, 8, 9), "another kind between the same sites is another event");
	is_u64(lw_box_event(before)->expected, 9, "with what was expected");
	ok(!add(LW_EVENT_SIZE_MISMATCH, 0, 1, 16, 10) && lw_box_event(before)->bytes == 8,
			"the first one's numbers stay");
}

static void test_full(void)
{
	uint32_t nr_more = 0, count;

	for (uint32_t i = 0; i < LW_MAX_EVENTS + 5; i++)
		nr_more += add(LW_EVENT_DOUBLE_FREE, i, i, 0, 0);
	is_u64(lw_box->nr_events, LW_MAX_EVENTS, "as many as there is room for");
	is_u64(lw_box->dropped[LW_DROP_EVENTS], LW_MAX_EVENTS + 5 - nr_more, "the others are counted as dropped");
	count = (uint32_t)lw_box_event(0)->count;
	(void)add(LW_EVENT_MISMATCH, lw_box_event(0)->alloc_site, lw_box_event(0)->free_site, 1, 0);
	is_u64(lw_box_event(0)->count, count + 1, "known ones are counted as ever");
}

int main(void)
{
	tables_max_sites = 1024;
	tables_start();
	test_threads();
	test_distinct();
	test_full();
	return done();
}
