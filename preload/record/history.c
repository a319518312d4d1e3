/* SPDX-License-Identifier: MIT */
/*
 * history.c - taking samples of all sites, a slice at a time; see history.h.
 *
 * `sampler` belongs to the thread that has claimed it. The claim is one compare-and-swap that is
 * tried, never waited for: who does not get it has nothing to do. A sample becomes visible to
 * readers when its last slice is done; until then its slot is marked as not kept.
 *
 * A slot is reused without being cleared: a sweep writes a word for each site that had one there
 * before, and beyond those only words that are not 0. So a tile whose sites hold nothing is never
 * touched, and takes no memory.
 */
#include "preload/record/history.h"

#include <string.h>

#include "preload/base/hot.h"
#include "preload/share/box.h"
#include "preload/share/emit.h"

enum {
	FIRST_INTERVAL_MS = 50,
	MOST_INTERVAL_MS = 1 << 30, /* twelve days: two years of samples */
	STRETCH_SITES = 32,	/* summed together: 1 KiB of stack */
	STEP_COUNTERS = 2048,	/* counters of 32 bytes that one step reads: some microseconds */
	SITES_PER_MS = 200,	/* a look at a site takes about 25 ns: half a per cent of the time */
	LEAST_STEP_SITES = 16,	/* with all rows in use */
	MOST_STEP_SITES = 512,	/* each tile may be a page to be made */
	LEAST_SAMPLES = 12,	/* fewer have no trend: exit is not noted */
	LEAST_HELD_BLOCKS = 6,
};

static struct sampler {
	uint32_t is_busy; /* a thread is at it; acquire and release */
	bool is_sweeping;
	uint32_t slot;	    /* of the sample under way */
	uint32_t next_site; /* of the sweep */
	uint32_t end_site;
	uint64_t ms; /* of the sample under way */
	uint64_t interval_ms;
	uint64_t random;
	uint32_t nr_kept; /* stored atomically: read at exit without the claim */
	uint32_t nr_merged; /* pairs at the start of `order` that have become one since the interval doubled */
	uint8_t order[LW_HISTORY_SAMPLES]; /* slots by time */
} sampler;

static bool claim(void)
{
	uint32_t nobody = 0;

	return !lw_load(&sampler.is_busy) &&
	       __atomic_compare_exchange_n(&sampler.is_busy, &nobody, 1, false, __ATOMIC_ACQUIRE,
		       __ATOMIC_RELAXED);
}

static void release(void)
{
	lw_store_release(&sampler.is_busy, 0);
}

/* xorshift64: from the state alone, and good enough to break step. */
static uint64_t draw(void)
{
	sampler.random ^= sampler.random << 13;
	sampler.random ^= sampler.random >> 7;
	sampler.random ^= sampler.random << 17;
	return sampler.random;
}

/* Some moment of the next interval; of a later one while there are too many sites for so many looks. */
static void set_next(void)
{
	uint64_t interval_ms = sampler.interval_ms;
	uint64_t nr_left_out = sampler.end_site / SITES_PER_MS / interval_ms;
	uint64_t begin_ms = (sampler.ms / interval_ms + 1 + nr_left_out) * interval_ms;

	lw_store(&lw_hot.next_sample_ms, begin_ms + draw() % interval_ms);
}

void lw_history_start(void)
{
	uint64_t seed = sampler.random ^ lw_hot.start_ns ^ (uint64_t)lw_own.pid << 40;

	memset(&sampler, 0, sizeof(sampler));
	sampler.random = seed ? seed : 1;
	sampler.interval_ms = FIRST_INTERVAL_MS;
	sampler.nr_merged = LW_HISTORY_SAMPLES / 2;
	set_next();
}

static uint32_t *word_of(uint32_t site, uint32_t slot)
{
	char *tile = lw_own.history + (size_t)(site / LW_CHUNK_SITES) * LW_HISTORY_TILE_BYTES;

	return (uint32_t *)(void *)tile + (size_t)slot * LW_CHUNK_SITES + site % LW_CHUNK_SITES;
}

static struct lw_held *held_of(uint32_t site)
{
	return lw_own.held + site;
}

/* Live bytes and blocks of nr sites; what ran below 0 for a moment (a thread that ends) is 0. */
static void look(uint32_t first, uint32_t nr, struct lw_held *live)
{
	struct lw_count sums[STRETCH_SITES];

	lw_emit_counts(lw_box, lw_own.total_bytes, first, nr, sums);
	for (uint32_t i = 0; i < nr; i++) {
		int64_t bytes = (int64_t)(sums[i].alloc_bytes - sums[i].freed_bytes);
		int64_t blocks = (int64_t)(sums[i].alloc_blocks - sums[i].freed_blocks);

		live[i].bytes = bytes > 0 ? (uint64_t)bytes : 0;
		live[i].blocks = blocks > 0 ? (uint64_t)blocks : 0;
	}
}

/* How many sites from `first` on are looked at together: they share a chunk. */
static uint32_t stretch(uint32_t first, uint32_t end)
{
	uint32_t nr = STRETCH_SITES - first % STRETCH_SITES;

	return nr < end - first ? nr : end - first;
}

/* The slot of the oldest pair not yet merged that goes; the other one stays for both. */
static uint32_t merge_pair(void)
{
	uint32_t at, slot;

	if (sampler.nr_merged == LW_HISTORY_SAMPLES / 2) {
		sampler.nr_merged = 0;
		if (sampler.interval_ms < MOST_INTERVAL_MS)
			sampler.interval_ms *= 2;
	}
	at = sampler.nr_merged++ + (uint32_t)(draw() >> 32 & 1);
	slot = sampler.order[at];
	lw_store(&sampler.nr_kept, sampler.nr_kept - 1);
	memmove(sampler.order + at, sampler.order + at + 1, sampler.nr_kept - at);
	lw_store_release(&lw_box->samples[slot].is_kept, 0);
	return slot;
}

static void begin_sample(uint64_t now_ms)
{
	sampler.slot = sampler.nr_kept < LW_HISTORY_SAMPLES ? sampler.nr_kept : merge_pair();
	sampler.ms = now_ms;
	sampler.next_site = 0;
	sampler.end_site = lw_load_acquire(&lw_own.nr_sites);
	sampler.is_sweeping = true;
	lw_store(&lw_hot.next_sample_ms, 0); /* whoever allocates lends a hand */
}

static void end_sample(void)
{
	struct lw_sample *sample = &lw_box->samples[sampler.slot];

	lw_store(&sample->ms, sampler.ms);
	lw_store(&sample->nr_sites, sampler.end_site);
	lw_store_release(&sample->is_kept, 1);
	sampler.order[sampler.nr_kept] = (uint8_t)sampler.slot;
	lw_store(&sampler.nr_kept, sampler.nr_kept + 1);
	sampler.is_sweeping = false;
	set_next();
}

static void note(uint32_t first, uint32_t nr)
{
	uint32_t nr_before = lw_box->samples[sampler.slot].nr_sites;
	struct lw_held live[STRETCH_SITES];

	look(first, nr, live);
	for (uint32_t i = 0; i < nr; i++)
		if (live[i].bytes || first + i < nr_before)
			lw_store(word_of(first + i, sampler.slot), lw_history_pack(live[i].bytes));
}

static void sweep(void)
{
	uint32_t nr_rows = lw_load(&lw_own.nr_rows), budget = STEP_COUNTERS / (nr_rows ? nr_rows : 1);
	uint32_t end = sampler.end_site;

	budget = budget < LEAST_STEP_SITES  ? LEAST_STEP_SITES
		 : budget > MOST_STEP_SITES ? MOST_STEP_SITES
					    : budget;
	if (end - sampler.next_site > budget)
		end = sampler.next_site + budget;
	while (sampler.next_site < end) {
		uint32_t nr = stretch(sampler.next_site, end);

		note(sampler.next_site, nr);
		sampler.next_site += nr;
	}
	if (end == sampler.end_site)
		end_sample();
}

LW_COLD void lw_history_step(uint64_t now_ms)
{
	if (!claim())
		return;
	/* another thread may have done it between the caller's look and the claim */
	if (!sampler.is_sweeping && now_ms >= lw_load(&lw_hot.next_sample_ms))
		begin_sample(now_ms);
	if (sampler.is_sweeping)
		sweep();
	release();
}

void lw_history_note_exit(uint64_t now_ms)
{
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites);
	bool is_again = lw_box->exit_began_ms;
	struct lw_held live[STRETCH_SITES];

	if (lw_load(&sampler.nr_kept) < LEAST_SAMPLES)
		return;
	for (uint32_t site = 0, nr; site < nr_sites; site += nr) {
		nr = stretch(site, nr_sites);
		look(site, nr, live);
		for (uint32_t i = 0; i < nr; i++)
			if (live[i].blocks || is_again)
				*held_of(site + i) = live[i];
	}
	lw_store_release(&lw_box->exit_began_ms, now_ms ? now_ms : 1);
}

/* Held more in the second half of the samples than in the first, by a fifth. */
static bool has_grown(uint32_t site)
{
	uint32_t half = sampler.nr_kept / 2;
	uint64_t sums[2] = { 0, 0 };

	for (uint32_t i = 0; i < 2 * half; i++) {
		uint32_t slot = sampler.order[i];

		if (site < lw_box->samples[slot].nr_sites) /* a quarter of 2^64 bytes leaves room to add */
			sums[i >= half] += lw_history_unpack(*word_of(site, slot)) >> 8;
	}
	return sums[1] > sums[0] + sums[0] / 5;
}

static bool has_emptied_grown(void)
{
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites);
	struct lw_held live[STRETCH_SITES];

	for (uint32_t site = 0, nr; site < nr_sites; site += nr) {
		nr = stretch(site, nr_sites);
		look(site, nr, live);
		for (uint32_t i = 0; i < nr; i++) {
			uint64_t blocks = held_of(site + i)->blocks;

			if (blocks >= LEAST_HELD_BLOCKS && live[i].blocks < blocks &&
					has_grown(site + i))
				return true;
		}
	}
	return false;
}

bool lw_history_may_be_held(void)
{
	bool may_be;

	if (!lw_load(&lw_box->exit_began_ms))
		return false;
	if (!claim()) /* a thread that goes on allocating */
		return true;
	may_be = has_emptied_grown();
	release();
	return may_be;
}
