/* SPDX-License-Identifier: MIT */
/*
 * unit-history.c - the samples of a run of any length cover it evenly and say what was held; they are
 * taken in slices; many threads at once do no harm; exit is noted exactly; a child begins anew.
 *
 * Time is the test's own: lw_history_step() is told it, and a block is an address that nobody looks
 * behind.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/record/history.h"
#include "preload/share/emit.h"
#include "snapshot/model/decode.h"
#include "snapshot/model/trend.h"

enum { NR_MANY = 3000, NR_THREADS = 4, NR_EVENTS = 20000, BLOCK_BYTES = 100 };

static uintptr_t next_address = UINT64_C(0x20000000000);

__attribute__((noinline)) static uintptr_t allocate(void)
{
	uintptr_t address = __atomic_fetch_add(&next_address, 4096, __ATOMIC_RELAXED);

	LW_CALLER(call);
	lw_track_alloc(lw_hide((void *)address), BLOCK_BYTES, LW_KIND_MALLOC, call);
	return address;
}

/* The real clock must not take a sample meanwhile. */
#define ALLOCATE_UNSEEN()                                                                          \
	do {                                                                                       \
		uint64_t due_ms_ = lw_hot.next_sample_ms;                                          \
		lw_store(&lw_hot.next_sample_ms, UINT64_MAX);                                      \
		(void)allocate();                                                                  \
		lw_store(&lw_hot.next_sample_ms, due_ms_);                                         \
	} while (0)

static void begin_anew(void)
{
	lw_history_start();
	memset(lw_box->samples, 0, sizeof(lw_box->samples));
}

static void step(uint64_t now_ms)
{
	if (now_ms < lw_load(&lw_hot.next_sample_ms) || !lw_track_enter())
		return;
	lw_history_step(now_ms);
	lw_track_leave();
}

static struct model *read_region(uint64_t now_ms)
{
	struct decode decode = {.model = model_new()};

	(void)lw_emit_region(lw_box, lw_box->total_bytes, lw_box->started_mono_ns + now_ms * 1000000,
		decode_record, &decode);
	model_finish(decode.model);
	return decode.model;
}

/* The first site that holds blocks. */
static const struct model_site *only_site(const struct model *model)
{
	for (size_t i = 0; i < model->nr_sites; i++)
		if (model_is_held(model, i))
			return &model->sites[i];
	return NULL;
}

/* One more block for each 1/500 of the run: the value tells the time. */
static void test_even(uint64_t end_ms, uint64_t every_ms)
{
	uint64_t nr_blocks = 0, nr_old, ms, widest_ms = 0, before_ms = 0;
	const struct model_history *past;
	bool is_true = true, is_rising = true;
	struct model *model;

	begin_anew();
	nr_old = lw_emit_site_count(lw_box, lw_box->total_bytes, 1).alloc_blocks;
	for (ms = 0; ms < end_ms; ms += every_ms) {
		step(ms);
		for (; nr_blocks * end_ms < ms * 500 + end_ms; nr_blocks++)
			ALLOCATE_UNSEEN();
	}
	model = read_region(end_ms);
	past = only_site(model)->history;
	for (uint32_t i = 0; i < past->nr_samples; i++) {
		uint64_t at_ms = past->samples[i].ms;
		uint64_t held = past->samples[i].bytes / BLOCK_BYTES - nr_old;
		uint64_t least = at_ms * 500 / end_ms;

		is_rising = is_rising && (!i || at_ms > before_ms);
		is_true = is_true && held + 3 >= least && held <= least + 3;
		widest_ms = at_ms - before_ms > widest_ms ? at_ms - before_ms : widest_ms;
		before_ms = at_ms;
	}
	widest_ms = end_ms - before_ms > widest_ms ? end_ms - before_ms : widest_ms;
	is_u64(past->nr_samples, end_ms < 3000 ? past->nr_samples : LW_HISTORY_SAMPLES,
		"%" PRIu64 " ms: all samples are used (%u)", end_ms, past->nr_samples);
	ok(is_rising, "their times rise");
	ok(widest_ms <= end_ms / 8, "no gap is wider than an eighth of the run: %" PRIu64 " ms",
		widest_ms);
	ok(is_true, "each says what was held then");
	model_free(model);
}

/* Sites by hand: stacks of one frame. */
static void make_sites(uint32_t nr)
{
	struct lw_stack stack = {.nr = 1};

	for (uint32_t i = 0; i < nr; i++) {
		stack.pcs[0] = UINT64_C(0x100000000) + i;
		(void)lw_sites_intern(&stack, lw_site_key(LW_KIND_MALLOC, 0, 0));
	}
}

static void test_slices(void)
{
	uint32_t nr_steps = 0, nr_before = 0, nr_after = 0;
	uint64_t ms;

	make_sites(NR_MANY);
	begin_anew();
	ms = lw_hot.next_sample_ms;
	do {
		nr_before = lw_box->samples[0].is_kept;
		step(ms);
		nr_steps++;
	} while (!lw_hot.next_sample_ms && nr_steps < 1000);
	nr_after = lw_box->samples[0].is_kept;
	ok(nr_steps >= 3 && nr_steps <= NR_MANY / 16, "a sample of %d sites is taken in %u slices", NR_MANY,
		nr_steps);
	ok(!nr_before && nr_after == 1, "and kept when the last is done");
	ok(lw_hot.next_sample_ms > ms && lw_hot.next_sample_ms <= ms + 150, "the next one is due later");
	is_u64(lw_box->samples[0].ms, ms, "its time is that of the first slice");
}

static void *crowd(void *unused)
{
	for (int i = 0; i < NR_EVENTS; i++) {
		uintptr_t address = allocate();

		if (i % 16 == 0)
			lw_store(&lw_hot.next_sample_ms, 0); /* always due */
		lw_track_free((void *)address, LW_KIND_FREE, &(struct lw_call){0});
	}
	return unused;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	uint32_t nr_kept = 0;

	for (int i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, crowd, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < LW_HISTORY_SAMPLES; i++)
		nr_kept += lw_box->samples[i].is_kept;
	ok(nr_kept >= LW_HISTORY_SAMPLES - 1, "%d threads that all want a sample: %u kept", NR_THREADS,
		nr_kept);
}

static void test_exit(void)
{
	uintptr_t first = 0;
	struct model *model;
	struct trend trend;
	uint64_t ms;

	begin_anew();
	for (ms = 0; ms < 300; ms += 10)
		step(ms);
	lw_track_exit_begins();
	is_u64(lw_box->exit_began_ms, 0, "a run too short for a trend: exit is not noted");
	first = next_address;
	for (; ms < 4000; ms += 10) {
		while (step(ms), !lw_hot.next_sample_ms)
			;
		ALLOCATE_UNSEEN();
	}
	(void)lw_track_enter();
	lw_history_note_exit(4000);
	lw_track_leave();
	is_u64(lw_box->exit_began_ms, 4000, "exit is noted");
	ok(!lw_history_may_be_held(), "nothing was freed since: nothing is held by exit");
	for (uintptr_t address = first; address < next_address; address += 4096)
		lw_track_free((void *)address, LW_KIND_FREE, &(struct lw_call){0});
	ok(lw_history_may_be_held(), "all was freed since: something may be");
	model = read_region(4100);
	for (size_t i = 0; i < model->nr_sites; i++) {
		trend_judge(model, &model->sites[i], false, &trend);
		if (trend.is_held)
			break;
	}
	ok(trend.is_held && trend.growth.kind == GROWTH_GROWING, "and it is: it had grown");
	is_u64(trend.held_blocks, (next_address - first) / 4096, "exactly so many blocks");
	is_u64(trend.held_bytes, trend.held_blocks * BLOCK_BYTES, "and bytes");
	model_free(model);
}

static void test_child(void)
{
	uint32_t nr_kept = 0;
	int status = -1;
	pid_t child = (fflush(stdout), fork()); /* ThreadSanitizer flushes at _exit too */

	if (!child) {
		(void)allocate();
		for (uint32_t i = 0; i < LW_HISTORY_SAMPLES; i++)
			nr_kept += lw_box->samples[i].is_kept;
		_exit(nr_kept || lw_box->exit_began_ms || lw_hot.next_sample_ms < 50 ||
			lw_hot.next_sample_ms >= 100);
	}
	(void)waitpid(child, &status, 0);
	is_u64(status, 0, "a forked child has no past");
}

int main(void)
{
	tables_start();
	lw_hot.depth = 1; /* the place of the call alone makes the site */
	test_even(2000, 3);
	test_even(4000, 3);
	test_even(60000, 7);
	test_even(UINT64_C(30) * 86400 * 1000, 100003);
	test_even(UINT64_C(1500) * 86400 * 1000, 10000019);
	test_slices();
	test_exit();
	test_threads();
	test_child();
	return done();
}
