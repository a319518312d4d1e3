/* SPDX-License-Identifier: MIT */
/*
 * format.c - sizes, counts, times and strangers' names for a report.
 *
 * One rule: nothing exact is lost. A size that is rounded for the eye is followed by the number of
 * bytes. Names of functions and files come out of files somebody else made, and go to a terminal:
 * what could move the cursor or ring the bell becomes a question mark.
 */
#include "snapshot/report/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *format_size(char out[FORMAT_BYTES], uint64_t bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(
			out, FORMAT_BYTES, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
		return out;
	}
	for (; size >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	(void)snprintf(out, FORMAT_BYTES, "%.1f %s", size, units[unit]);
	return out;
}

const char *format_bytes(char out[FORMAT_BYTES], uint64_t bytes)
{
	size_t used;

	format_size(out, bytes);
	used = strlen(out);
	if (bytes >= 1024)
		(void)snprintf(out + used, FORMAT_BYTES - used, " (%" PRIu64 " bytes)", bytes);
	return out;
}

const char *format_count(char out[FORMAT_BYTES], uint64_t nr, const char *what)
{
	(void)snprintf(out, FORMAT_BYTES, "%" PRIu64 " %.40s%s", nr, what, nr == 1 ? "" : "s");
	return out;
}

const char *format_ns(char out[FORMAT_BYTES], uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (ns < 999500000)
		(void)snprintf(out, FORMAT_BYTES, "%" PRIu64 " ms", (ns + 500000) / 1000000);
	else if (s < 60)
		(void)snprintf(out, FORMAT_BYTES, "%.1f s", (double)ns / 1e9);
	else if (s < 3600)
		(void)snprintf(out, FORMAT_BYTES, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(
			out, FORMAT_BYTES, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else
		(void)snprintf(
			out, FORMAT_BYTES, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
	return out;
}

const char *format_text(char *out, size_t out_bytes, const char *text)
{
	size_t i = 0;

	for (; text[i] && i + 1 < out_bytes; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	out[i] = '\0';
	if (text[i] && out_bytes > 4)
		memcpy(out + i - 3, "...", 3);
	return out;
}
