/* SPDX-License-Identifier: MIT */
/*
 * pairs.h - mismatches that are none: both sides belong to operators which the program defines itself.
 *
 * A program may replace operator new by a function that calls malloc, and leave operator delete to
 * the runtime, or the other way round, or have its own copy of both. To LeakWatch inside it the block
 * then comes from malloc and goes by delete. The names of the two stacks tell: what malloc was
 * called by operator new for is new. So each side counts as what the outermost operator says that
 * stands at its inner end, inlined or not.
 */
#ifndef LW_SNAPSHOT_PAIRS_H
#define LW_SNAPSHOT_PAIRS_H

#include "snapshot/report/report.h"

/* Sets event->is_rejected, and takes back LW_EVENT_UNSURE where names make it certain. */
void pairs_check(struct report *report, struct model_event *event, struct report_stack *stack);

#endif
