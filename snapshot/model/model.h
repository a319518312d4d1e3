/* SPDX-License-Identifier: MIT */
/*
 * model.h - what is known of one watched process, as the records told it.
 *
 * decode.c fills it in; model_finish() then works out what the records do not say: live bytes, and
 * which sites are one place in the program although they have several ids (a module that was
 * unloaded and loaded again). After that the report reads `sites` and skips those whose `merged`
 * is not themselves. Everything in it is data of the process itself, no name looked up.
 */
#ifndef LW_SNAPSHOT_MODEL_H
#define LW_SNAPSHOT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/share/region.h"
#include "preload/share/wire.h"

enum {
	MODEL_MAX_SITES = 1 << 21, /* twice what a region has room for; more is an attack */
	MODEL_MAX_EVENTS = 1 << 16,
	MODEL_MAX_MARKS = 1 << 10,
	MODEL_TEXTS = 5,	    /* LW_TEXT_*; 0 is none */
	MODEL_TEXT_BYTES = 1 << 16, /* longest text taken */
};
#define MODEL_NO_SITE UINT32_MAX

/* The past of a site, as its HISTORY record told it. */
struct model_history {
	uint32_t nr_samples, max_samples; /* max: room there is, 0: no more than those */
	uint32_t nr_noted; /* of them by the process itself; the others are looks at it: growth.h */
	uint64_t exit_began_ms; /* 0: exit has not begun, or not noted */
	uint64_t held_bytes, held_blocks; /* when exit began */
	struct lw_wire_sample samples[];  /* in order of time */
};

struct model_module {
	bool is_known, is_unloaded;
	uint8_t build_id_bytes;
	uint8_t build_id[LW_BUILD_ID_BYTES];
	uint16_t same_as; /* lowest module number that is the same file */
	char *path;
	uint64_t base, start, end;
};

struct model_site {
	uint32_t id;
	uint32_t merged; /* index of the site that speaks for this one; itself if it does */
	uint8_t kind;	 /* enum lw_kind */
	uint8_t flags;	 /* LW_SITE_* */
	uint16_t nr_frames;
	uint32_t first_ms, oldest_ms; /* after the start; oldest ~0: unknown */
	uint32_t hint_line;
	char *hint_file;   /* NULL: no hint */
	uint64_t *pcs;	   /* innermost first */
	uint16_t *modules; /* in the same allocation as pcs */
	struct model_history *history; /* NULL: none, it has always held the same */
	struct lw_count count;
	struct lw_scan_site scan;	  /* what the last scan found; merged too */
	uint64_t live_bytes, live_blocks; /* its own; after model_finish() of all that were merged */
};

struct model_event {
	uint32_t what;			/* enum lw_event_what */
	uint32_t alloc_site, free_site; /* ids; by model_finish(): indices, or MODEL_NO_SITE */
	uint32_t first_ms;
	uint64_t count, bytes, expected;
	uint32_t flags; /* LW_EVENT_* */
	bool is_rejected; /* by the names of its stacks: no error (report/pairs.c) */
};

struct model_held {
	uint64_t bytes, blocks;
	uint32_t at_ms; /* after the start */
};

/* A unit of work of the program's own: what it held when it passed the mark first and last. */
struct model_mark {
	char *name;
	uint64_t count;
	struct model_held first, last;
};

struct model {
	bool has_hello, has_totals, has_bye, has_scan;
	bool is_scan_whole; /* its last record came: what comes next is of another */
	bool is_in_tick; /* records have come since the last tick or BYE */
	bool is_cut;	 /* the last record was not whole */
	bool is_still;	 /* the last tick told nothing new: LW_TICK_STILL */
	struct lw_wire_hello hello;
	struct lw_wire_totals totals;
	struct lw_wire_bye bye;
	struct lw_wire_scan scan; /* means something if has_scan */
	char *texts[MODEL_TEXTS]; /* NUL-terminated; NULL: none */
	size_t text_bytes[MODEL_TEXTS];

	struct model_module *modules; /* by number; nr_modules of them, some unknown */
	size_t nr_modules;
	struct model_site *sites; /* in the order of arrival */
	size_t nr_sites, max_sites;
	uint32_t *index; /* open hash of ids: place in `sites` + 1, 0 empty; a power of two */
	size_t max_index;
	struct model_event *events;
	size_t nr_events, max_events;
	struct lw_chain *chains; /* examples of blocks, checked */
	size_t nr_chains, max_chains;
	struct model_mark *marks;
	size_t nr_marks, max_marks;

	uint64_t nr_bad;     /* records that made no sense, left out */
	uint64_t nr_unknown; /* records of a type this program does not know */
	uint32_t nr_modules_seen, nr_sites_seen, nr_events_seen; /* for comparison with BYE */
	uint64_t nr_ticks;	   /* of a stream; 0: the records were made in one go */
	uint64_t tick_ns;	   /* age of the process at the last tick */
	uint64_t nr_lost_messages; /* of the stream */
};

struct model *model_new(void);
void model_free(struct model *model);

/* The place of site `id` in sites, or MODEL_NO_SITE. */
uint32_t model_find_site(const struct model *model, uint32_t id);
/* The same, made new (all zero but the id) when it is not there; NULL when there are too many. */
struct model_site *model_intern_site(struct model *model, uint32_t id);
struct model_event *model_add_event(struct model *model); /* NULL: too many */
/* The mark of this name, which becomes the model's; NULL: too many. */
struct model_mark *model_intern_mark(struct model *model, char *name);

/* The number in its file of a pc in a frame; the pc itself where the module is unknown. */
uint64_t model_offset(const struct model *model, uint64_t pc, uint16_t module);
/* The place of a module, below LW_MAX_MODULES; what model_module() found before is gone. */
struct model_module *model_intern_module(struct model *model, uint32_t module);
/* The module of a frame, or NULL. */
const struct model_module *model_module(const struct model *model, uint16_t module);

/* live_bytes and live_blocks of a site by itself, from its counts. */
void model_count_live(struct model_site *site);
/* Which modules are the same file. Part of model_finish(); a stream needs it by itself, when modules came. */
void model_match_modules(struct model *model);

/* Live counts, modules that are the same, sites that are the same; call once, after the last
 * record. */
void model_finish(struct model *model);

/* Are the scans of the sites a finished scan's? */
bool model_is_scanned(const struct model *model);

/* Is this site one that a report may list: it speaks for itself and holds blocks? */
bool model_is_held(const struct model *model, size_t site);

const char *model_kind_name(unsigned kind);			  /* "new[]" */
const char *model_drop_reason(unsigned drop);			  /* for people */
const char *model_scan_reason(unsigned why);			  /* for people; enum lw_scan_why */
const char *model_text(const struct model *model, unsigned what); /* "" when there is none */

#endif
