/* SPDX-License-Identifier: MIT */
/*
 * holder.h - the examples a scan has left of a site: which belong to an entry of the report, and what their
 * numbers are called.
 */
#ifndef LW_SNAPSHOT_HOLDER_H
#define LW_SNAPSHOT_HOLDER_H

#include "snapshot/report/report.h"

enum { HOLDER_TEXT_BYTES = 1024 };

/* The next example of this entry from `from` on, and where to go on; NULL: no more. */
const struct lw_chain *holder_next(const struct report *report, const struct report_site *judged, size_t *from);

/* Is this an entry whose examples are of use: lost, or growing? */
bool holder_is_shown(const struct report_site *judged);

/* Is the example known to be held by something? False: it is lost, or may be. */
bool holder_is_held(const struct report *report, const struct lw_chain *chain);

/*
 * Its age at the moment the report is of, like all others in it, and never more than that of the oldest: the
 * scan has measured it at its own moment, which at an exit that took its time is after the end.
 */
uint64_t holder_age_ms(const struct report *report, const struct report_site *judged, const struct lw_chain *chain);

/* The class of an object that begins with this pointer; NULL: it is no vtable's. */
const char *holder_class(struct report *report, const struct lw_chain *chain);

/* "cache+0x8 (libx.so+0x4048)", "the stack of thread 12, in work (app+0x1234)" ... */
const char *holder_root(char out[HOLDER_TEXT_BYTES], struct report *report, const struct lw_chain *chain);
/* The variable of a root in data, and how far inside; NULL: none is known. */
const char *holder_variable(struct report *report, const struct lw_chain *chain, uint64_t *into);

/* "data", "stack" ... */
const char *holder_root_name(unsigned kind);

/* Index in the model of the site an owner is from, or MODEL_NO_SITE. */
uint32_t holder_site(const struct report *report, const struct lw_owner *owner);

/* How many stand before those that were left out, and how many were; all: nr_owners, 0. */
uint32_t holder_left_out(const struct lw_chain *chain, uint32_t *nr_kept);

#endif
