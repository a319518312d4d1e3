/* SPDX-License-Identifier: MIT */
/*
 * dump.h - the parts of a dump, for emit.c, and for those in this room that say only some of it.
 *
 * A dump is opened on a region, and knows from then on where the areas lie; lw_dump_refresh() asks
 * again how much of them is filled. Each function hands whole records to the sink and is false when
 * the sink was. About 9 KiB, meant for the stack or for a mapping of ours.
 */
#ifndef LW_SHARE_DUMP_H
#define LW_SHARE_DUMP_H

#include "preload/share/emit.h"

enum { LW_DUMP_STRETCH = 32 }; /* sites summed together: 1 KiB of stack, half a chunk */

/* A sample of the history that is kept. */
struct lw_moment {
	uint64_t ms;
	uint32_t slot, nr_sites;
};

struct dump {
	const struct lw_region_header *region;
	uint64_t region_bytes;
	struct lw_area modules, sites, rows, chunks, events, hints, pool, marks; /* copies */
	struct lw_area held, history, scans, chains;
	uint32_t nr_modules, nr_sites, nr_rows, nr_hints, nr_events, nr_samples, nr_marks;
	uint64_t exit_began_ms;
	struct lw_moment moments[LW_HISTORY_SAMPLES]; /* nr_samples of them, in order of time */
	struct lw_wire_bye sent;
	lw_emit_sink_fn *sink;
	void *context;
	_Alignas(8) unsigned char record[LW_WIRE_MAX];
};

/* False: the header is not one of ours. */
bool lw_dump_open(struct dump *d, const struct lw_region_header *region, uint64_t region_bytes,
	lw_emit_sink_fn *sink, void *context);
void lw_dump_refresh(struct dump *d);

bool lw_dump_hello(struct dump *d, uint64_t now_mono_ns);
bool lw_dump_texts(struct dump *d);
bool lw_dump_modules(struct dump *d, uint32_t first);
bool lw_dump_site(struct dump *d, uint32_t id);
bool lw_dump_count(struct dump *d, uint32_t id, const struct lw_count *count, uint32_t oldest_ms);
/* When samples were taken, in order. One that is taken meanwhile replaces one of them: a wrong value at most. */
void lw_dump_read_moments(struct dump *d);
/* Nothing where it would say nothing: the site always held what it held last, or nothing. */
bool lw_dump_history(struct dump *d, uint32_t site, const struct lw_count *count);
bool lw_dump_event(struct dump *d, const struct lw_event *event);
/* Nothing where no scan was ever made. */
bool lw_dump_scan(struct dump *d);
bool lw_dump_totals(struct dump *d);
bool lw_dump_bye(struct dump *d);

/* Counters of sites first..first+nr, of one chunk, added up over all rows. */
void lw_dump_sum(const struct dump *d, uint32_t first, uint32_t nr, struct lw_count *sums);
/* As the region has it; UINT32_MAX unknown. */
uint32_t lw_dump_oldest(const struct dump *d, uint32_t id);
/* The event, copied, if it is complete. */
bool lw_dump_read_event(const struct dump *d, uint32_t index, struct lw_event *event);
bool lw_dump_mark(struct dump *d, uint32_t index); /* nothing where there is none */
uint64_t lw_dump_mark_count(const struct dump *d, uint32_t index); /* 0: none */

/* A zeroed record of `bytes`, to be filled in and finished with the length it then has. */
void *lw_dump_begin(struct dump *d, int64_t type, size_t bytes);
bool lw_dump_finish(struct dump *d, size_t bytes);
/* `bytes` bytes at entry `index` of an area, or NULL when they do not lie in the segment. */
const void *lw_dump_at(const struct lw_region_header *region, uint64_t region_bytes, const struct lw_area *area,
	uint64_t index, uint64_t bytes);

/* A NUL-terminated text at pool offset / 8, or NULL; *nr_bytes without the NUL, cut at the room there is. */
const char *lw_dump_text(const struct dump *d, uint32_t off, size_t *nr_bytes);
/* So many as the region says, but no more than there is room for. */
uint32_t lw_dump_cut(uint32_t nr, uint32_t room);

#endif
