/* SPDX-License-Identifier: MIT */
/*
 * source.h - where records come from: the region of a process, or a stream of saved ones.
 *
 * Each source hands records to a sink in the order of wire.h. What went wrong is left as a sentence
 * for people in struct source_error, since only the source knows what the person should do about
 * it.
 */
#ifndef LW_SNAPSHOT_SOURCE_H
#define LW_SNAPSHOT_SOURCE_H

#include <sys/types.h>

#include "preload/share/emit.h"
#include "snapshot/source/alive.h"
#include "snapshot/source/place.h"


/* A region that was found and mapped read-only; its header has passed the check. */
struct source_region {
	const struct lw_region_header *region; /* lw_region_detach() when done */
	uint64_t bytes;
	int shmid;
	bool is_alive; /* its process */
	struct place place;
};
bool source_attach(pid_t pid, struct source_region *found, struct source_error *error);

/* The region of a watched process; if it has ended, this is what it left behind, and BYE says so (wire.h). */
bool source_pid(pid_t pid, lw_emit_sink_fn *sink, void *context, struct source_error *error);

bool source_shmid(int shmid, lw_emit_sink_fn *sink, void *context, struct source_error *error);

/*
 * Asks a watched process to search itself for lost memory, and waits until it has. False: it cannot be
 * asked, or does not answer; the error says why.
 */
bool source_ask_scan(pid_t pid, struct source_error *error);

/* The same for those who have something else to do meanwhile: begin, look now and then, end. */
struct source_scan {
	struct lw_region_header *region;
	uint64_t began_ns, before_ns;
	uint32_t request;
	uint32_t nr_knocks; /* times it was made to look */
	const char *why;    /* the last time failed; NULL it did not */
	pid_t pid;
	struct alive alive;
	bool has_begun;
};
enum source_answer { SOURCE_NOT_YET, SOURCE_ANSWERED, SOURCE_NO_ANSWER };
bool source_scan_begin(struct source_scan *scan, pid_t pid, struct source_error *error);
enum source_answer source_scan_look(struct source_scan *scan, struct source_error *error);
void source_scan_end(struct source_scan *scan);

/* Records one after another, from a pipe or file, until its end. name is for messages. */
bool source_stream(
	int fd, const char *name, lw_emit_sink_fn *sink, void *context, struct source_error *error);

/* A file that holds a region (option black_box); of one that has ended as above. */
bool source_is_boxfile(int fd);
bool source_boxfile(
	int fd, const char *name, lw_emit_sink_fn *sink, void *context, struct source_error *error);

/* One watched process of this user, for --list. */
struct source_process {
	int32_t pid;
	bool is_gone; /* ended, its region not yet removed */
	uint32_t end_kind; /* enum lw_end */
	uint64_t uptime_ns;
	uint64_t live_bytes;
	const char *exe; /* valid during the call */
};
typedef void source_process_fn(void *context, const struct source_process *process);

/* Calls found() for each; how many, or -errno when this kernel or container has no SysV segments.
 */
int source_list(source_process_fn *found, void *context);

#endif
