/* SPDX-License-Identifier: MIT */
/* pairs.c - whose operators allocated and released a block; see pairs.h. */
#include "snapshot/report/pairs.h"

#include <string.h>

enum { MAX_INNER_FRAMES = 8 }; /* between malloc and the operator that called it, helpers included */

enum side { SIDE_MALLOC, SIDE_NEW, SIDE_NEW_ARRAY };

static enum side side_of_kind(unsigned kind)
{
	switch (kind) {
	case LW_KIND_NEW:
	case LW_KIND_DELETE:
		return SIDE_NEW;
	case LW_KIND_NEW_ARRAY:
	case LW_KIND_DELETE_ARRAY:
		return SIDE_NEW_ARRAY;
	default:
		return SIDE_MALLOC;
	}
}

/* Is this the global operator of that name, "operator new" say, with or without parameters? */
static bool is_operator(const char *function, const char *operator_name, enum side *side)
{
	size_t nr_bytes = strlen(operator_name);

	if (!function || strncmp(function, operator_name, nr_bytes))
		return false;
	if (function[nr_bytes] && !strchr("[(", function[nr_bytes]))
		return false;
	*side = function[nr_bytes] == '[' ? SIDE_NEW_ARRAY : SIDE_NEW;
	return true;
}

/* What a stack amounts to; *is_named: its inner end has names enough to be certain. */
static enum side side_of(struct report *report, uint32_t index, const char *operator_name,
	struct report_stack *stack, bool *is_named)
{
	const struct model_site *site = &report->model->sites[index];
	enum side side = side_of_kind(site->kind), found;

	report_stack(report, site, stack);
	*is_named = stack->nr_frames && stack->frames[0].symbol->line;
	for (size_t i = 0; i < stack->nr_frames && i < MAX_INNER_FRAMES; i++)
		if (is_operator(stack->frames[i].symbol->function, operator_name, &found))
			side = found;
	return side;
}

void pairs_check(struct report *report, struct model_event *event, struct report_stack *stack)
{
	enum side allocated, released;
	bool is_alloc_named, is_free_named;

	if (event->what != LW_EVENT_MISMATCH || event->flags & LW_EVENT_COOKIE ||
		event->alloc_site == MODEL_NO_SITE || event->free_site == MODEL_NO_SITE)
		return;
	allocated = side_of(report, event->alloc_site, "operator new", stack, &is_alloc_named);
	released = side_of(report, event->free_site, "operator delete", stack, &is_free_named);
	event->is_rejected = allocated == released;
	if (is_alloc_named && is_free_named)
		event->flags &= ~(uint32_t)LW_EVENT_UNSURE;
}
