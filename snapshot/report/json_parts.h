/* SPDX-License-Identifier: MIT */
/*
 * json_parts.h - what the files of the JSON report share among themselves.
 *
 * The same address stands in thousands of stacks. Its frames are built once and shared by reference in the
 * tree; that makes a report of ten thousand sites a matter of writing, not of building.
 */
#ifndef LW_SNAPSHOT_JSON_PARTS_H
#define LW_SNAPSHOT_JSON_PARTS_H

#include <jansson.h>

#include "snapshot/report/report.h"

/* The frames of one pc, as shared values. */
struct json_frame {
	uint64_t pc; /* 0: empty */
	uint32_t module;
	uint32_t place; /* in the stack: inlined frames of one pc follow each other */
	json_t *frame;
};

struct json_writer {
	struct report *report;
	struct report_stack stack;
	struct json_frame *cache; /* open hash, a power of two */
	size_t nr_cached, max_cached;
};

/* A text whose bytes may be anything, as a valid one. */
json_t *json_text(const char *text);
json_t *json_number(uint64_t value);
json_t *json_hex(uint64_t value);

/* All frames of a site, innermost first, inlined ones expanded. */
json_t *json_stack(struct json_writer *w, const struct model_site *site);
void json_forget_frames(struct json_writer *w);

json_t *json_sites(struct json_writer *w);
/* The mismatches, or the other errors. */
json_t *json_events(struct json_writer *w, bool is_mismatch);

#endif
