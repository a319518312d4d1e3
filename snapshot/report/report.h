/* SPDX-License-Identifier: MIT */
/*
 * report.h - a model that has been judged: what every output writes.
 *
 * judge.c makes it out of a finished model: names from symbols, verdicts, suppressions, the order
 * of the sites and the sums. text.c and json.c only write it down.
 */
#ifndef LW_SNAPSHOT_REPORT_H
#define LW_SNAPSHOT_REPORT_H

#include <stdio.h>

#include "preload/share/options.h"
#include "snapshot/model/model.h"
#include "snapshot/model/trend.h"
#include "snapshot/model/verdict.h"
#include "snapshot/symbols/suppress.h"
#include "snapshot/symbols/symbols.h"

/* One line of a stack; several for one pc where functions were inlined. */
struct report_frame {
	uint64_t pc;	 /* of the call, not of the return: what a symboliser wants */
	uint64_t offset; /* the same in the module's file */
	const struct model_module *module; /* NULL: none */
	uint16_t module_id;
	const struct symbol_frame *symbol;
};

struct report_stack {
	struct report_frame *frames;
	size_t nr_frames, max_frames;
	/* the part a person wants to see, behind the allocator and before the start of process or
	 * thread */
	size_t first_user, end_user;
};

struct report_sum {
	uint64_t bytes, blocks, nr_sites;
};

/* A site, or the part of one that a verdict is about: some of its blocks may be lost and others not. */
struct report_site {
	const struct model_site *site;
	uint64_t bytes, blocks; /* live; of a held site: when exit began */
	struct report_sum lost, indirect; /* of bytes and blocks */
	struct trend *trend;	/* NULL: steady, or a part; freed by report_fini() */
	enum verdict verdict;
	const char *reason;	    /* runtime: who keeps it; else NULL */
	const char *through;	    /* libc function that allocated for its caller; NULL none */
	struct suppress_rule *rule; /* that took it out; NULL none */
};

struct report {
	struct model *model;
	struct symbols *symbols;
	struct suppress *suppress;
	const struct lw_options *options;
	const char *state;   /* as in JSON: live, exit, _exit, quick_exit, killed */
	int signal;	     /* that killed it; 0 unknown */
	const char *missing; /* the records are not whole: what is missing; NULL nothing */
	uint64_t began_ns;   /* CLOCK_MONOTONIC, when this program began to work */
	uint64_t left_bytes; /* of memory, for whoever grows; 0 unknown */

	struct report_site *sites; /* those that hold blocks, or held them until exit: leaks worst first, then
				      reachable, runtime, then suppressed */
	size_t nr_sites, max_sites, nr_leak_sites; /* the first nr_leak_sites count as leaks */
	struct report_sum live, leaked, reachable, runtime, suppressed; /* reachable: what is no leak */
	struct report_sum lost, indirect; /* of leaked */
	struct report_sum pointed; /* of leaked and reachable: what the scan found no reason to call lost */
	struct report_sum held; /* freed by exit: in no other sum, but among the leak sites */
	uint64_t total_allocs, total_bytes, total_frees, nr_alloc_sites;
	uint64_t nr_dropped, nr_mismatches, nr_errors, peak_bytes;
	enum verdict_owner owners[LW_MAX_MODULES];
};

/* Fills in what follows `began_ns`; the members before it are the caller's. */
void report_judge(struct report *report);
/* The same for one event alone; false: there is no such event, or its names say it is none. */
bool report_judge_event(struct report *report, size_t index);
void report_fini(struct report *report);

/* For those who judge one site at a time: tells symbols of the modules (again, when some came). */
void report_introduce_modules(struct report *report);
/* Verdict, reason and suppression of one site, with *stack as report_stack() gave it. */
void report_judge_site(
	struct report *report, const struct report_stack *stack, struct report_site *judged);

/* The frames of a site, inlined ones expanded, into *stack, which is used again and freed by the
 * caller. */
void report_stack(struct report *report, const struct model_site *site, struct report_stack *stack);

/* The frame to show alone: the program's own, not what the standard library has inlined into it. NULL: none. */
const struct report_frame *report_own_frame(const struct report_stack *stack);

/* Is there something a person should see without asking? */
bool report_has_news(const struct report *report);

/* Are the scans of its sites from the same moment as its counters? */
bool report_is_scan_fresh(const struct report *report);

/* How long before the end (or now) something was that happened at_ms after the start. */
uint64_t report_age_ms(const struct report *report, uint32_t at_ms);

uint64_t report_now_ns(void);

/* Does it count as leaked, by its verdict or because some of it is lost? */
bool report_is_leak(const struct report_site *judged);

/* The first site behind those that are leaks or reachable. */
size_t report_end_of_reachable(const struct report *report);

/* The text report, colours or not. */
void report_text(struct report *report, FILE *out, bool has_color);
/* One wrong release, as the text report shows it, under a line that says whose it is. */
void report_text_event(struct report *report, size_t index, FILE *out, bool has_color);
/* The JSON report, one line; false: no memory or `out` failed. */
bool report_json(struct report *report, FILE *out);

#endif
