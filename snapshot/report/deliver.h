/* SPDX-License-Identifier: MIT */
/*
 * deliver.h - the reports of a process that has ended: who writes what, and where.
 *
 * Only the process that was started under LeakWatch, or one that `follow` names, may write to
 * stderr; the others write to files whose name tells them apart (%p), or nothing at all.
 */
#ifndef LW_SNAPSHOT_DELIVER_H
#define LW_SNAPSHOT_DELIVER_H

#include "snapshot/report/report.h"

/* Does anything have to be written for this process at all, whatever the report holds? */
bool deliver_is_needed(const struct model *model, const struct lw_options *options);

/*
 * Writes the text and JSON reports where the options say. complaints: lines about bad settings that
 * go before the text, "" none. stderr_fd is used if it is the file that was the target's stderr
 * when it started.
 */
void deliver_reports(struct report *report, const char *complaints, int stderr_fd);

/* Are colours wanted on this descriptor? */
bool deliver_has_color(const struct lw_options *options, int fd);

/* One event of a process that runs, told where its text report would go. */
void deliver_event(struct report *report, size_t index, int stderr_fd);

#endif
