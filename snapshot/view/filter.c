/* SPDX-License-Identifier: MIT */
/*
 * filter.c - does a text stand anywhere in the stack of a site? See watch.h.
 *
 * A person who looks for a name knows it from any place of the stack, not only from the frame that a
 * row has room for. The answer is kept with the site until the text or the modules change.
 */
#include "snapshot/view/watch.h"

#include <string.h>

static bool has_text(const char *text, const char *filter)
{
	return text && strcasestr(text, filter);
}

static bool is_in_frame(const struct report_frame *frame, const char *filter)
{
	return has_text(frame->symbol->function, filter) || has_text(frame->symbol->file, filter) ||
	       (frame->module && has_text(frame->module->path, filter));
}

static bool is_in_stack(struct watch *watch, const struct model_site *site, const char *filter)
{
	report_stack(&watch->report, site, &watch->stack);
	/* beyond that is the start of the process or thread, which is in every stack */
	for (size_t i = 0; i < watch->stack.end_user; i++)
		if (is_in_frame(&watch->stack.frames[i], filter))
			return true;
	return false;
}

void watch_filter(struct watch *watch, const char *filter)
{
	if (!strcmp(watch->filter, filter) && watch->filter_modules == watch->nr_modules_known)
		return;
	(void)snprintf(watch->filter, sizeof(watch->filter), "%s", filter);
	watch->filter_modules = watch->nr_modules_known;
	watch->nr_filters++;
}

bool watch_is_wanted(struct watch *watch, size_t place)
{
	const struct model_site *from = &watch->decode.model->sites[place];
	struct watch_site *site = &watch->sites[place];

	if (!watch->filter[0] || has_text(from->hint_file, watch->filter))
		return true;
	if (site->filtered_nr != watch->nr_filters) {
		if (watch->patience_ns && report_now_ns() >= watch->patience_ns) {
			watch->nr_pending++;
			return false;
		}
		site->filtered_nr = watch->nr_filters;
		site->is_filtered_in = is_in_stack(watch, from, watch->filter);
	}
	return site->is_filtered_in;
}
