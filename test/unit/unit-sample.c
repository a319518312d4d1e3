/* SPDX-License-Identifier: MIT */
/*
 * unit-sample.c - sampling is unbiased: what is recorded counts for as much, on average, as all there was.
 *
 * The weights are held against the formula in floating point; then programs with sizes of every sort run again and
 * again with other dice, and the mean of the estimates must lie within four standard errors of the truth. One in
 * some 16,000 such comparisons fails by chance, so the dice are the same in each run of this test.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <math.h>

#include "preload/record/sample.h"
#include "preload/share/emit.h"

enum { MEAN = 4096, RUNS = 400, BLOCKS = 3000 };

static const uintptr_t base = UINT64_C(0x30000000000);

static void test_weights(void)
{
	static const uint64_t sizes[] = { 0, 1, 16, 100, 1000, 4095, 4096, 5000, 40000, 163839, 163840, 1 << 20, UINT64_C(1) << 40 };
	static const uint64_t means[] = { 1, 64, 4096, 512 << 10, UINT64_C(1) << 40 };
	double worst = 0, worst_blocks = 0;

	for (size_t m = 0; m < LW_ARRAY_LENGTH(means); m++) {
		for (size_t i = 0; i < LW_ARRAY_LENGTH(sizes); i++) {
			double bytes = sizes[i] ? (double)sizes[i] : 1, p = -expm1(-bytes / (double)means[m]), blocks = 0;
			double sum = sizes[i] ? bytes / p : 0;
			struct lw_weight weight = { 0, 0 };

			lw_hot.sample_bytes = means[m];
			for (uintptr_t k = 0; k < 1000; k++) {
				weight = lw_sample_weigh(base + 16 * k, sizes[i]);
				blocks += (double)weight.blocks / 1000;
			}
			worst = fmax(worst, fabs((double)weight.bytes - sum) / fmax(sum, 1e6));
			worst_blocks = fmax(worst_blocks, fabs(blocks - 1 / p) * p);
		}
	}
	ok(worst < 1e-6, "bytes are weighed by size and probability (off by %.1e at most)", worst);
	ok(worst_blocks < 0.05, "and blocks on average (%.3f)", worst_blocks);
}

static uint64_t state = 3;

static uint64_t any(uint64_t sides)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 20) % sides;
}

static uint64_t size_of(int sort)
{
	switch (sort) {
	case 0:
		return 24;
	case 1:
		return 1 + any(500);
	case 2:
		return any(20) ? 1 + any(2000) : 1 + any(100000);
	default:
		return MEAN;
	}
}

/* By how many standard errors the mean of the estimates differs from the truth. */
static double compare(int sort, double *blocks_off)
{
	double sum = 0, squares = 0, block_sum = 0, block_squares = 0, mean, error, truth = 0, block_truth = 0;

	for (int run = 0; run < RUNS; run++) {
		struct lw_thread thread = { .dice = any(UINT64_MAX >> 20) + 1 };
		double bytes = 0, blocks = 0, all = 0;

		(void)lw_sample_next(&thread, 1); /* the first distance */
		for (int i = 0; i < BLOCKS; i++) {
			uint64_t size = size_of(sort);
			struct lw_weight weight;

			all += (double)size;
			if (lw_sample_passes(&thread, size))
				continue;
			weight = lw_weight_of(base + 32 * any(1 << 30), size);
			bytes += (double)weight.bytes;
			blocks += (double)weight.blocks;
		}
		truth += all;
		block_truth += BLOCKS;
		sum += bytes - all;
		squares += (bytes - all) * (bytes - all);
		block_sum += blocks - BLOCKS;
		block_squares += (blocks - BLOCKS) * (blocks - BLOCKS);
	}
	mean = block_sum / RUNS;
	error = sqrt(block_squares / RUNS / RUNS);
	*blocks_off = error > 0 ? mean / error : 0;
	mean = sum / RUNS;
	error = sqrt(squares / RUNS / RUNS);
	printf("# %.0f bytes a run, estimates off by %+.2f %% on average; blocks by %+.2f %%\n", truth / RUNS, 100 * sum / truth,
			100 * block_sum / block_truth);
	return error > 0 ? mean / error : 0;
}

static void test_unbiased(void)
{
	static const char *const names[] = { "of one small size", "small", "of all sizes", "of the mean distance" };

	lw_hot.sample_bytes = MEAN;
	for (int sort = 0; sort < 4; sort++) {
		double blocks, bytes = compare(sort, &blocks);

		ok(fabs(bytes) < 4 && fabs(blocks) < 4, "blocks %s: off by %.1f and %.1f standard errors", names[sort], bytes, blocks);
	}
	lw_hot.sample_bytes = 0;
}

/* ---- in the tables ---- */

__attribute__((noinline)) static void allocate(uintptr_t at, uint64_t bytes)
{
	LW_CALLER(call);
	lw_track_alloc(lw_hide((void *)at), bytes, LW_KIND_MALLOC, call);
	__asm__ volatile("");
}

__attribute__((noinline)) static void release(uintptr_t at)
{
	LW_CALLER(call);
	lw_track_free((void *)at, LW_KIND_FREE, call);
	__asm__ volatile("");
}

static int64_t live(uint64_t *alloc_bytes)
{
	int64_t bytes = 0;

	*alloc_bytes = 0;
	for (uint32_t id = 0; id < lw_box->nr_sites; id++) {
		struct lw_count one = lw_emit_site_count(lw_box, lw_box->total_bytes, id);

		bytes += (int64_t)(one.alloc_bytes - one.freed_bytes);
		*alloc_bytes += one.alloc_bytes;
	}
	return bytes;
}

static void test_tables(void)
{
	enum { NR = 40000, BYTES = 64 };
	struct lw_block block;
	uint64_t allocated;
	int nr_recorded = 0;

	allocate(base - 64, 8); /* brings all up */
	release(base - 64);
	lw_wrong_not_all_known();
	lw_hot.sample_bytes = MEAN;
	lw_self.gate = LW_GATE_SAMPLED;
	for (uintptr_t i = 0; i < NR; i++) {
		allocate(base + i * BYTES, BYTES);
		nr_recorded += lw_blocks_find(base + i * BYTES, &block);
	}
	ok(nr_recorded > NR * BYTES / MEAN / 2 && nr_recorded < NR * BYTES / MEAN * 2, "%d of %d blocks are recorded", nr_recorded, NR);
	ok(llabs(live(&allocated) - NR * BYTES) < NR * BYTES / 5, "which count for all (%" PRId64 " of %d bytes)", live(&allocated), NR * BYTES);
	for (uintptr_t i = 0; i < NR; i += 2)
		release(base + i * BYTES);
	for (uintptr_t i = 1; i < NR; i += 2) {
		LW_CALLER(call);
		if (lw_track_detach(lw_hide((void *)(base + i * BYTES)), call, &block))
			lw_track_forget(lw_hide((void *)(base + i * BYTES)), &block);
	}
	is_u64((uint64_t)live(&allocated), 0, "a release takes away what the allocation brought");
	is_u64(lw_box->nr_events, 0, "and the release of a block that was passed over is no wrong one");
	is_u64(lw_box->dropped[LW_DROP_REENTRANT] + lw_box->dropped[LW_DROP_STALE] + lw_box->dropped[LW_DROP_UNTRACKED], 0,
			"nothing is dropped");
}

/* ---- forked children ---- */

static void test_children(void)
{
	struct lw_thread thread = { 0 };
	uint64_t first;

	lw_hot.sample_bytes = MEAN;
	(void)lw_sample_next(&thread, 1);
	first = thread.dice;
	lw_sample_forget(&thread);
	ok(!thread.until_sample && !thread.dice, "a child forgets its parent's dice, and how far the next mark was");
	(void)lw_sample_next(&thread, 1);
	ok(thread.dice && thread.dice != first, "and throws others");
	is_u64(lw_sample_weigh(base, 0).bytes, 0, "a block of no bytes counts for none");
	ok(lw_sample_weigh(base, 0).blocks > MEAN / 2, "but for blocks");
	lw_hot.sample_bytes = 0;
}

int main(void)
{
	test_children();
	test_weights();
	test_unbiased();
	test_tables();
	return done();
}
