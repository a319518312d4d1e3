/* SPDX-License-Identifier: MIT */
/*
 * libc_names.h - what the C library does with memory it allocates, told by the name of the
 * function.
 *
 * A block from inside libc belongs either to libc (a buffer of stdout, the time zone) or to the
 * caller (what strdup returned). Only the function that was called tells. Names not in the tables
 * are unknown, and unknown is never hidden.
 */
#ifndef LW_SNAPSHOT_LIBC_NAMES_H
#define LW_SNAPSHOT_LIBC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum libc_memory {
	LIBC_UNKNOWN,
	LIBC_KEEPS, /* the process's own, until it ends */
	LIBC_GIVES, /* the caller has to release it */
};

/* Takes names as symbol tables have them: __strdup, _IO_fopen@@GLIBC_2.2.5, __asprintf_chk,
 * fopen64. */
enum libc_memory libc_names_memory(const char *function);

/* Anything allocated inside this function is libc's, whoever called: buffers of streams, NSS,
 * resolver. */
bool libc_names_is_internal(const char *function);

/* Does this function call code of the program (thread start, exit handlers, comparison functions)?
 */
bool libc_names_calls_back(const char *function);

/* The name without what the library's build put around it. */
void libc_names_plain(const char *function, char *out, size_t out_bytes);

#endif
