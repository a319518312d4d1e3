/* SPDX-License-Identifier: MIT */
/*
 * past.c - one sample a tick for each site, LW_HISTORY_SAMPLES at most; see past.h.
 *
 * When there are too many, the one goes whose neighbours are nearest to each other: the spacing stays as even as
 * it can, and what goes depends on the times alone, so that sites of one place can still be added up.
 */
#include "snapshot/model/past.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/alloc.h"
#include "snapshot/model/decode.h"

enum { FIRST_ROOM = 4 };

static void make_room(struct model_site *site)
{
	struct model_history *past = site->history;
	uint32_t max = past ? past->max_samples : 0;

	if (past && past->nr_samples < max)
		return;
	max = past && past->nr_samples * 2 > FIRST_ROOM ? past->nr_samples * 2 : FIRST_ROOM;
	max = max < LW_HISTORY_SAMPLES ? max : LW_HISTORY_SAMPLES;
	site->history = alloc_check(realloc(past, sizeof(*past) + max * sizeof(past->samples[0])));
	if (!past) /* it has always held the same */
		*site->history = (struct model_history){.nr_samples = 0};
	site->history->max_samples = max;
}

static void thin_out(struct model_history *past)
{
	uint64_t least = UINT64_MAX, gap;
	uint32_t which = 1;

	for (uint32_t i = 1; i + 1 < past->nr_samples; i++) {
		gap = past->samples[i + 1].ms - past->samples[i - 1].ms;
		if (gap < least) {
			least = gap;
			which = i;
		}
	}
	past->nr_noted -= which < past->nr_noted;
	past->nr_samples--;
	memmove(&past->samples[which], &past->samples[which + 1],
		(past->nr_samples - which) * sizeof(past->samples[0]));
}

static void add(struct model_site *site, uint64_t ms)
{
	struct model_history *past = site->history;

	if (past && past->nr_samples && past->samples[past->nr_samples - 1].ms >= ms)
		return;
	if (past && past->nr_samples == LW_HISTORY_SAMPLES)
		thin_out(past);
	make_room(site);
	past = site->history;
	past->samples[past->nr_samples++] = (struct lw_wire_sample){ms, site->live_bytes};
}

static void sample(struct model *model)
{
	uint64_t at_ms = model->tick_ns / 1000000;

	for (size_t i = 0; i < model->nr_sites; i++) {
		struct model_site *site = &model->sites[i];

		if (!site->history && site->first_ms < at_ms)
			add(site, site->first_ms);
		add(site, at_ms);
	}
}

bool past_record(void *context, const struct lw_wire_head *record)
{
	struct model *model = ((struct decode *)context)->model;
	uint64_t nr_ticks = model->nr_ticks;

	if (!decode_record(context, record))
		return false;
	/* what exit's handlers do is not the program's */
	if (model->nr_ticks != nr_ticks && !model->is_still)
		sample(model);
	return true;
}
