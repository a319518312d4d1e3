/* SPDX-License-Identifier: MIT */
/* place.c - who may write; see place.h. */
#include "preload/share/place.h"

bool lw_place_is_given(const struct lw_options *options, uint32_t flags)
{
	if (options->report == LW_REPORT_NEVER && !options->json[0]) /* of the text alone */
		return false;
	if (flags & (LW_REGION_ROOT | LW_REGION_WATCHED))
		return true;
	return lw_options_has_pid(options->json) || lw_options_has_pid(options->log_path);
}
