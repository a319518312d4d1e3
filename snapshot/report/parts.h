/* SPDX-License-Identifier: MIT */
/*
 * parts.h - a site of which some blocks are lost and others are not becomes one entry for each verdict.
 */
#ifndef LW_SNAPSHOT_PARTS_H
#define LW_SNAPSHOT_PARTS_H

#include "snapshot/report/report.h"

/* Adds a judged site to report->sites, in parts where a scan tells them apart. */
void parts_add(struct report *report, struct report_site *whole);

#endif
