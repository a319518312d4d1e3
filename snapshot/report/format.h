/* SPDX-License-Identifier: MIT */
/*
 * format.h - numbers and strangers' texts as people read them. Pure; each writes into the caller's
 * room.
 */
#ifndef LW_SNAPSHOT_FORMAT_H
#define LW_SNAPSHOT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

enum { FORMAT_BYTES = 64 }; /* room that is enough for each of these */

/* "1 byte", "192 bytes", "1.5 MiB (1572864 bytes)": the exact number is always there. */
const char *format_bytes(char out[FORMAT_BYTES], uint64_t bytes);
/* "192 bytes", "1.5 MiB": short. */
const char *format_size(char out[FORMAT_BYTES], uint64_t bytes);
/* "1 block", "3 blocks": the plural adds an s. */
const char *format_count(char out[FORMAT_BYTES], uint64_t nr, const char *what);
/* "12 ms", "3.2 s", "2 min 5 s", "3 h 12 min", "4 d 2 h" */
const char *format_ns(char out[FORMAT_BYTES], uint64_t ns);

/* A text from elsewhere with control characters made '?', for a terminal; cut with "..." at
 * out_bytes. */
const char *format_text(char *out, size_t out_bytes, const char *text);

#endif
