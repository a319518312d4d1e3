/* SPDX-License-Identifier: MIT */
/* text_parts.h - the parts of the text report, in the order in which they stand there. */
#ifndef LW_SNAPSHOT_TEXT_PARTS_H
#define LW_SNAPSHOT_TEXT_PARTS_H

#include "snapshot/report/group.h"
#include "snapshot/report/text_stack.h"

/* text_sites.c */
void text_leaks(struct text_writer *w, const struct group *groups);
void text_reachable(struct text_writer *w);
void text_runtime(struct text_writer *w);
void text_scan(const struct text_writer *w);

/* text_events.c: wrong releases, all or one */
void text_events(struct text_writer *w);
void text_event(struct text_writer *w, const struct model_event *event);

#endif
