/* SPDX-License-Identifier: MIT */
/* ages.c - visiting all blocks for their age; see ages.h. Runs in the helper: raw system calls only. */
#include "preload/live/ages.h"

#include <string.h>

#include "preload/base/sys.h"
#include "preload/share/box.h"

/*
 * Looked at again when it has cost a quarter of a per cent of a core, some 10 ms for a million blocks every 5 s: the
 * target pays about as much once more, for the table has been in another core's cache.
 */
enum { COST_SHARE = 400, LEAST_MS = 1000 };

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	(void)lw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void note(void *context, uintptr_t address, const struct lw_block *block)
{
	struct lw_ages *ages = context;
	uint32_t inverted = ~(uint32_t)lw_block_birth_ms(block->birth);

	(void)address;
	if (block->is_inherited)
		ages->inherited++;
	else if (block->site < ages->max_sites && inverted > ages->inverted[block->site])
		ages->inverted[block->site] = inverted;
}

static void visit(struct lw_ages *ages)
{
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites);

	if (nr_sites > ages->max_sites)
		nr_sites = ages->max_sites;
	ages->inherited = 0;
	memset(ages->inverted, 0, nr_sites * sizeof(ages->inverted[0]));
	lw_blocks_visit_in(&ages->room, note, ages);
}

void lw_ages_refresh(struct lw_ages *ages)
{
	uint64_t began_ns = now_ns(), took_ns;

	if (began_ns < ages->next_ns)
		return;
	visit(ages);
	took_ns = now_ns() - began_ns;
	ages->next_ns = began_ns + took_ns * COST_SHARE + LEAST_MS * UINT64_C(1000000);
}

void lw_ages_complete_region(struct lw_ages *ages)
{
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites);

	visit(ages);
	for (uint32_t site = 0; site < nr_sites && site < ages->max_sites; site++)
		lw_store(&lw_box_site(site)->oldest_ms, ~ages->inverted[site]);
	lw_add(&lw_box->inherited_blocks, ages->inherited);
}
