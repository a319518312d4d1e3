/* SPDX-License-Identifier: MIT */
/*
 * log.h - what LeakWatch says inside the target: rare, short, and never at the target's cost.
 *
 * A message is put together on the stack, cut at 1 KiB, and leaves in one write to a descriptor
 * that is not ours. So before each write it is checked that the descriptor is still the file it was
 * at the start, and that it takes the bytes at once. Where a write would block, raise a signal or
 * go to the wrong place, the message is dropped, and counted. No allocation, no stdio stream;
 * errno and the signal mask are kept. Any thread may call; no lock is needed or taken.
 *
 * The target may read its own stderr: say things only when `verbose` asks for them, or when the
 * person who started the program must know them, and then once per cause.
 */
#ifndef LW_BASE_LOG_H
#define LW_BASE_LOG_H

#include "preload/base/base.h"

enum { LW_LOG_BYTES = 1024 }; /* longest message, with prefix and newline */

/* Causes said once per process. */
enum lw_log_cause {
	LW_LOG_NO_REGION,    /* no shared memory: nobody else can see this process */
	LW_LOG_NO_MEMORY,    /* no room for our own tables */
	LW_LOG_NO_ALLOCATOR, /* the next allocator in line was not found */
	LW_LOG_NO_CLEANER,
	LW_LOG_NO_REPORTER, /* leakwatch-snapshot is missing or does not start */
	LW_LOG_NO_FILE,	    /* a report file cannot be written */
	LW_LOG_ASIDE,	    /* the program is one we do not watch */
	LW_LOG_CHECK,	    /* an impossible state: tracking is off */
	LW_LOG_EARLY_FULL,  /* the bootstrap arena ran out */
	LW_LOG_QUEUE,
	LW_LOG_OTHER,
	LW_NR_LOG_CAUSES,
};

/* Remembers which file stderr is. To be called first; a message before it does so itself. */
void lw_log_init(void);

/* Writes to fd from now on; -1 silences. The file it is now is the file it must be later. */
void lw_log_set_fd(int fd);

/* "leakwatch: ", the message, a newline. Only %d %u %x %c %s %p with l, ll, z: they do not
 * allocate. */
void lw_log(const char *fmt, ...) LW_PRINTF(1, 2);

/* The same, for the first message of a cause; false: this cause was named before. */
bool lw_log_once(enum lw_log_cause cause, const char *fmt, ...) LW_PRINTF(2, 3);

/* A finished line, without prefix; the newline is added. Fits lw_options_complain_fn with NULL. */
void lw_log_line(void *unused, const char *line);

/* Text of any length, as it is, in pieces of at most 1 KiB; false: some of it was dropped. */
bool lw_log_text(const char *text, size_t nr_bytes);

/* Is the descriptor still the file it was, so that others may be told to write there? */
bool lw_log_is_same_file(void);

uint64_t lw_log_nr_dropped(void); /* messages not written, or not wholly */

#endif
