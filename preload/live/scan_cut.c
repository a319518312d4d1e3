/* SPDX-License-Identifier: MIT */
/* scan_cut.c - intervals that are no roots; see scan_cut.h. */
#include "preload/live/scan_cut.h"

#include "preload/live/scan_index.h"

enum { MAX_CUTS = 1 << 20 };

bool lw_scan_cuts_init(struct lw_scan_cuts *cuts)
{
	cuts->cuts = lw_scan_sparse_room(MAX_CUTS * sizeof(*cuts->cuts));
	cuts->nr = 0;
	cuts->max = MAX_CUTS;
	cuts->is_full = false;
	return cuts->cuts != NULL;
}

void lw_scan_cut(struct lw_scan_cuts *cuts, uintptr_t start, uintptr_t end)
{
	struct lw_scan_cut *last = cuts->nr ? &cuts->cuts[cuts->nr - 1] : NULL;

	if (start >= end)
		return;
	if (last && start >= last->start && start <= last->end) {
		last->end = end > last->end ? end : last->end;
		return;
	}
	if (cuts->nr == cuts->max) {
		cuts->is_full = true;
		return;
	}
	cuts->cuts[cuts->nr++] = (struct lw_scan_cut){ start, end };
}

static void sink(struct lw_scan_cut *heap, size_t at, size_t nr)
{
	struct lw_scan_cut moving = heap[at];

	for (size_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && heap[child + 1].start > heap[child].start)
			child++;
		if (heap[child].start <= moving.start)
			break;
		heap[at] = heap[child];
	}
	heap[at] = moving;
}

/* Heapsort: in place, no recursion, never slow. */
void lw_scan_cuts_sort(struct lw_scan_cuts *cuts)
{
	struct lw_scan_cut *all = cuts->cuts;

	for (size_t at = cuts->nr / 2; at-- > 0;)
		sink(all, at, cuts->nr);
	for (size_t nr = cuts->nr; nr > 1; nr--) {
		struct lw_scan_cut last = all[nr - 1];

		all[nr - 1] = all[0];
		all[0] = last;
		sink(all, 0, nr - 1);
	}
}

void lw_scan_cuts_rest(const struct lw_scan_cuts *cuts, size_t *next, uintptr_t start, uintptr_t end,
		lw_scan_piece_fn *piece, void *context)
{
	for (; *next < cuts->nr && start < end; ++*next) {
		const struct lw_scan_cut *cut = &cuts->cuts[*next];

		if (cut->start >= end)
			break;
		if (cut->start > start)
			piece(context, start, cut->start);
		start = cut->end > start ? cut->end : start;
		if (start >= end)
			return; /* the cut may reach into what comes next */
	}
	if (start < end)
		piece(context, start, end);
}
