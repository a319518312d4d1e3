/* SPDX-License-Identifier: MIT */
/*
 * watch.h - a process over time: what the model said at each tick, and what follows from that.
 *
 * Fed with records of a stream (watch_record is their sink); each TICK is one sample. For every site
 * it knows the change since the last tick and since a baseline, and a series of at most
 * WATCH_SAMPLES samples, at times common to all sites, that halves its resolution when it is full.
 * A site that never changed has no series of its own. Names and verdicts are looked up when a row is asked for.
 */
#ifndef LW_SNAPSHOT_WATCH_H
#define LW_SNAPSHOT_WATCH_H

#include "snapshot/model/decode.h"
#include "snapshot/report/report.h"

enum { WATCH_SAMPLES = 64, WATCH_FILTER_BYTES = 64 };

struct watch_site {
	uint64_t last_bytes;		      /* at the last tick */
	int64_t change_bytes;		      /* by the last tick */
	uint64_t base_bytes, base_blocks;     /* at the baseline */
	uint64_t *series;		      /* bytes at watch->at_ms[]; NULL: always base_bytes */
	struct growth growth;		      /* as of grown_at samples */
	uint64_t grown_at;
	bool is_judged;
	struct report_site judged;
	/* of the frame to show, once judged; NULL unknown. Good until the next record */
	const char *function, *file, *module;
	unsigned line;
	uint16_t module_id;
	bool is_hinted; /* file and line are the macro's */
	uint64_t filtered_nr; /* the filter that is_filtered_in answers */
	bool is_filtered_in;
};

struct watch_totals {
	uint64_t bytes, blocks, peak_bytes;
	uint64_t nr_allocs, nr_frees;	      /* ever */
	double bytes_per_s, allocs_per_s;     /* over the last tick; NAN before the second */
	int64_t since_bytes;		      /* since the baseline */
	size_t nr_sites;		      /* that hold blocks */
};

struct watch {
	struct decode decode; /* its model is being filled */
	struct report report;
	struct watch_site *sites; /* as model->sites */
	size_t nr_sites, max_sites;
	uint64_t at_ms[WATCH_SAMPLES]; /* times of the samples, after the start of the process */
	size_t nr_samples;
	uint64_t nr_sampled; /* ever */
	uint64_t nr_ticks, stride; /* ticks per sample */
	uint64_t at_ns, base_ns;
	struct watch_totals totals;
	uint64_t nr_modules_known;
	struct report_stack stack; /* used again and again */
	uint64_t patience_ns; /* CLOCK_MONOTONIC: no more names are looked up after it; 0 no limit */
	size_t nr_pending;    /* sites that were left without a name for that, since it was last set */
	char filter[WATCH_FILTER_BYTES]; /* "": all */
	uint64_t filter_modules, nr_filters; /* it is another with every text and every module */
};

/* symbols and options live as long as the watch. */
void watch_init(struct watch *watch, struct symbols *symbols, struct suppress *suppress,
	const struct lw_options *options);
void watch_fini(struct watch *watch);

/* A lw_emit_sink_fn: decodes, and samples at a TICK. */
bool watch_record(void *watch, const struct lw_wire_head *record);
/* Samples now; for records that came without a TICK. */
void watch_sample(struct watch *watch, uint64_t at_ns);

/* From now on "since" means since here. */
void watch_reset_baseline(struct watch *watch);

enum watch_sort {
	WATCH_BY_BYTES,
	WATCH_BY_BLOCKS,
	WATCH_BY_CHANGE,
	WATCH_BY_SINCE,
	WATCH_BY_SLOPE,
	WATCH_BY_AGE,
	WATCH_NR_SORTS,
};
const char *watch_sort_name(enum watch_sort sort);

/*
 * The sites that hold blocks, in this order, as places in model->sites; how many. filter "": all, else
 * those with the text in function, file or module of any frame. The caller's array grows.
 */
size_t watch_order(struct watch *watch, enum watch_sort sort, const char *filter, uint32_t **order,
	size_t *max_order);

/* The parts of that in filter.c: from now on this text; and is this site one to be shown? */
void watch_filter(struct watch *watch, const char *filter);
bool watch_is_wanted(struct watch *watch, size_t site);

double watch_slope(const struct watch *watch, size_t site); /* bytes a second, over the series; NAN: not yet */
uint64_t watch_oldest_ms(const struct watch *watch, size_t site); /* its age; UINT64_MAX unknown */
/*
 * What the site's past says: its history in the region, then our own series, once that is dense enough to say
 * something. Judged anew after each sample.
 */
const struct growth *watch_growth(struct watch *watch, size_t site);
/* The verdict with that; names are looked up as by watch_judge(). */
enum verdict watch_verdict(struct watch *watch, size_t site);
/* Has the last search found some of it lost, and does that accuse somebody? */
bool watch_is_lost(struct watch *watch, size_t site);
/* All that is, and the site that lost most; that is MODEL_NO_SITE where there is none. */
struct report_sum watch_lost(struct watch *watch, uint32_t *most);
/* Names and verdict, looked up at the first time if there is patience left; else not yet is_judged. */
const struct watch_site *watch_judge(struct watch *watch, size_t site);
/* The sample i of a site, whether or not it has a series. */
uint64_t watch_at(const struct watch *watch, size_t site, size_t i);

#endif
