/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - what is to be thought of a site, and why. Pure: names in, verdict out.
 *
 * The order of enum verdict is the JSON schema's; the order of a report is verdict_rank()'s, worst
 * first. A stack is given as frames with names, innermost first, inlined ones expanded.
 */
#ifndef LW_SNAPSHOT_VERDICT_H
#define LW_SNAPSHOT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "snapshot/model/growth.h"

enum verdict {
	VERDICT_LOST,
	VERDICT_INDIRECT,
	VERDICT_GROWING,
	VERDICT_HELD,
	VERDICT_BOUNDED,
	VERDICT_REACHABLE,
	VERDICT_UNFREED,
	VERDICT_RUNTIME,
	NR_VERDICTS,
};

const char *verdict_name(enum verdict verdict);	   /* as in JSON */
const char *verdict_heading(enum verdict verdict); /* as a heading of the text report */
int verdict_rank(enum verdict verdict);		   /* 0 is worst */
bool verdict_is_leak(enum verdict verdict);	   /* counted in the summary */

/* With what the site's past says: memory that nothing points to, or that is not its own, stays so. */
enum verdict verdict_with_growth(enum verdict verdict, enum growth_kind kind, bool is_held);

/* Whose code a module is, told by the name of its file. */
enum verdict_owner {
	VERDICT_USER,
	VERDICT_LIBC, /* with its satellites: libpthread, NSS and conversion modules */
	VERDICT_LOADER,
	VERDICT_CXX, /* libstdc++, libc++, libgcc_s */
	VERDICT_OWN, /* libleakwatch.so */
};
enum verdict_owner verdict_owner(const char *module_path); /* NULL: unknown, user */

struct verdict_frame {
	enum verdict_owner owner;
	const char *function; /* NULL unknown */
};

struct verdict_stack {
	const struct verdict_frame *frames;
	size_t nr_frames;
	const char *callee; /* what the frame at verdict_libc_end() called, from its code; NULL
			       unknown */
};

/*
 * The frame that called into libc, when the innermost frames are libc's; 0 when they are not, or
 * when it cannot be told (a tail call, or code of libc that runs by itself). Ask only for its
 * callee.
 */
size_t verdict_libc_end(const struct verdict_frame *frames, size_t nr_frames);

/*
 * If the block belongs to libc, the loader or libstdc++ itself: why, as a static text that follows
 * "kept by"; else NULL. *through is the libc function that allocated on somebody's behalf, with its
 * plain name, or NULL; it lives as long as the names in the stack.
 */
const char *verdict_runtime(const struct verdict_stack *stack, const char **through);

/* The first frame a person wants to see: behind allocator, C library and C++ library; nr_frames if
 * none. */
size_t verdict_first_user(const struct verdict_frame *frames, size_t nr_frames);

#endif
