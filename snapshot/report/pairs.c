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

static const char *callee_of(struct report *report, const struct report_stack *stack)
{
	const struct report_frame *inner = stack->frames;

	if (!stack->nr_frames || !inner->module)
		return NULL;
	return symbols_callee(report->symbols, inner->module_id, inner->offset + 1);
}

/* Does this call name malloc or free itself, so that no operator can stand in between unseen? */
static bool is_plain_call(const char *callee)
{
	static const char *const names[] = {"malloc", "calloc", "realloc", "reallocarray", "free",
		"cfree", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc"};

	for (size_t i = 0; callee && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(callee, names[i]))
			return true;
	return false;
}

/* One side of a pair, by the names of its stack. */
struct side_names {
	enum side side;
	bool is_plain; /* not by an operator, as far as the call itself tells */
	bool is_named; /* its inner end has names enough to see what was inlined */
};

static struct side_names side_of(struct report *report, uint32_t index, const char *operator_name,
	struct report_stack *stack)
{
	const struct model_site *site = &report->model->sites[index];
	struct side_names names = {.side = side_of_kind(site->kind)};
	const char *callee;
	enum side found;

	report_stack(report, site, stack);
	callee = callee_of(report, stack);
	names.is_plain = names.side != SIDE_MALLOC || is_plain_call(callee);
	names.is_named = stack->nr_frames && stack->frames[0].symbol->line;
	/* an operator that ends in a jump to malloc or free has left no frame, only the call of itself */
	if (is_operator(callee, operator_name, &found))
		names.side = found;
	for (size_t i = 0; i < stack->nr_frames && i < MAX_INNER_FRAMES; i++)
		if (is_operator(stack->frames[i].symbol->function, operator_name, &found))
			names.side = found;
	return names;
}

void pairs_check(struct report *report, struct model_event *event, struct report_stack *stack)
{
	struct side_names allocated, released;

	if (event->what != LW_EVENT_MISMATCH || event->flags & LW_EVENT_COOKIE ||
		event->alloc_site == MODEL_NO_SITE || event->free_site == MODEL_NO_SITE)
		return;
	allocated = side_of(report, event->alloc_site, "operator new", stack);
	released = side_of(report, event->free_site, "operator delete", stack);
	event->is_rejected = allocated.side == released.side;
	if (!(event->flags & LW_EVENT_UNSURE))
		return;
	/* a virtual destructor that jumps to an operator which jumps to free: nothing of them is left */
	if (!allocated.is_plain || !released.is_plain)
		event->is_rejected = true;
	if (allocated.is_named && released.is_named)
		event->flags &= ~(uint32_t)LW_EVENT_UNSURE;
}
