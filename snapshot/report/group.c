/* SPDX-License-Identifier: MIT */
/*
 * group.c - puts together the sites that look the same to a person, by a hash of their shown
 * frames.
 *
 * The sites come in order, so the first of a group is its worst; afterwards the groups are sorted
 * once more, because several small ones may weigh more than a large one.
 */
#include "snapshot/report/group.h"

#include "snapshot/alloc.h"

struct shown {
	struct report_stack stack;
	size_t first, end;
};

static void show(struct report *report, const struct report_site *site, struct shown *shown)
{
	report_stack(report, site->site, &shown->stack);
	shown->first = report->options->full_stacks ? 0 : shown->stack.first_user;
	shown->end = report->options->full_stacks ? shown->stack.nr_frames : shown->stack.end_user;
}

static uint64_t hash_of(const struct report_site *site, const struct shown *shown)
{
	uint64_t hash = site->verdict;

	for (size_t i = shown->first; i < shown->end; i++) {
		hash = (hash ^ shown->stack.frames[i].offset) * UINT64_C(0x9e3779b97f4a7c15);
		hash = (hash ^ hash >> 29) + shown->stack.frames[i].module_id;
	}
	return hash ^ hash >> 32;
}

static bool same_hint(const struct model_site *a, const struct model_site *b)
{
	if (a->hint_line != b->hint_line || !a->hint_file != !b->hint_file)
		return false;
	return !a->hint_file || !strcmp(a->hint_file, b->hint_file);
}

static bool looks_same(const struct report_site *a, const struct shown *shown_a,
	const struct report_site *b, const struct shown *shown_b)
{
	size_t nr = shown_a->end - shown_a->first;

	if (a->verdict != b->verdict || !same_hint(a->site, b->site) ||
		nr != shown_b->end - shown_b->first)
		return false;
	if ((a->site->flags ^ b->site->flags) & LW_SITE_TRUNCATED)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct report_frame *x = &shown_a->stack.frames[shown_a->first + i];
		const struct report_frame *y = &shown_b->stack.frames[shown_b->first + i];

		if (x->offset != y->offset || x->module_id != y->module_id ||
			x->symbol != y->symbol)
			return false;
	}
	return nr > 0;
}

static void add(struct group *group, const struct report_site *judged)
{
	const struct model_site *site = judged->site;

	if (!group->first)
		*group = (struct group){
			.first = judged, .first_ms = UINT32_MAX, .oldest_ms = UINT32_MAX};
	group->live.bytes += judged->bytes;
	group->live.blocks += judged->blocks;
	group->live.nr_sites++;
	group->lost.bytes += judged->lost.bytes;
	group->lost.blocks += judged->lost.blocks;
	group->indirect.bytes += judged->indirect.bytes;
	group->indirect.blocks += judged->indirect.blocks;
	if (judged->lost.blocks) {
		group->dragged.bytes += site->scan.dragged_bytes;
		group->dragged.blocks += site->scan.dragged_blocks;
	}
	group->alloc_bytes += site->count.alloc_bytes;
	group->alloc_blocks += site->count.alloc_blocks;
	group->kinds |= 1u << site->kind;
	if (site->first_ms < group->first_ms)
		group->first_ms = site->first_ms;
	if (site->oldest_ms < group->oldest_ms)
		group->oldest_ms = site->oldest_ms;
}

static int compare(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int rank_a = verdict_rank(a->first->verdict), rank_b = verdict_rank(b->first->verdict);

	if (rank_a != rank_b)
		return rank_a - rank_b;
	if (a->live.bytes != b->live.bytes)
		return a->live.bytes < b->live.bytes ? 1 : -1;
	if (a->live.blocks != b->live.blocks)
		return a->live.blocks < b->live.blocks ? 1 : -1;
	return a->first->site->id < b->first->site->id ? -1 : 1;
}

struct group *group_sites(struct report *report, size_t from, size_t to, size_t *nr_groups)
{
	struct group *groups = alloc_array(to - from, sizeof(*groups));
	struct shown here = {0}, there = {0};
	size_t max = 16, nr = 0;
	uint32_t *table;

	while (max < (to - from) * 2)
		max *= 2;
	table = alloc_array(max, sizeof(*table));
	for (size_t i = from; i < to; i++) {
		const struct report_site *site = &report->sites[i];
		size_t slot;

		show(report, site, &here);
		slot = hash_of(site, &here) & (max - 1);
		for (; table[slot]; slot = (slot + 1) & (max - 1)) {
			show(report, groups[table[slot] - 1].first, &there);
			if (looks_same(site, &here, groups[table[slot] - 1].first, &there))
				break;
		}
		if (!table[slot])
			table[slot] = (uint32_t)++nr;
		add(&groups[table[slot] - 1], site);
	}
	qsort(groups, nr, sizeof(*groups), compare);
	free(table);
	free(here.stack.frames);
	free(there.stack.frames);
	*nr_groups = nr;
	return groups;
}
