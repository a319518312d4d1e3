/* SPDX-License-Identifier: MIT */
/*
 * place.h - may a process of these settings write a report at all? Asked at an exit by the target,
 * after a kill by the cleaner, before either starts a reporter for nothing.
 */
#ifndef LW_SHARE_PLACE_H
#define LW_SHARE_PLACE_H

#include "preload/share/options.h"
#include "preload/share/region.h"

/* flags: LW_REGION_*. A child writes only to files of its own, unless followed. */
bool lw_place_is_given(const struct lw_options *options, uint32_t flags);

#endif
