/* SPDX-License-Identifier: MIT */
/*
 * report.h - what `leakwatch-snapshot --report` answers to the process that started it.
 *
 * The ending target (or the cleaner) starts the reporter with a pipe as --done-fd. When all reports
 * are written, one struct lw_report_done comes through it, in one write; the reporter then exits. An
 * end of file without it, or another magic, means that no report was written: the caller says so
 * by its own means. The target needs the numbers for the option `exitcode`.
 */
#ifndef LW_SHARE_REPORT_H
#define LW_SHARE_REPORT_H

#include <stdint.h>

#define LW_REPORT_DONE_MAGIC UINT64_C(0x31454e4f444b574c) /* "LWKDONE1" */

struct lw_report_done {
	uint64_t magic;
	uint64_t leaked_bytes;	/* without what is suppressed and what the C library keeps */
	uint64_t leaked_blocks;
	uint64_t nr_mismatches; /* distinct mismatches and other errors */
};

_Static_assert(sizeof(struct lw_report_done) == 32, "one write to a pipe");

#endif
