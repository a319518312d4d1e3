/* SPDX-License-Identifier: MIT */
/*
 * marks.h - units of work that the program names: what it holds each time it has done one.
 *
 * The first and the last time, and how often, are kept in the region; what is held per mark is then
 * a matter of division, and a leak of a few bytes a request shows after minutes. Exact: the
 * counters of all threads are added up, which costs about a microsecond for a hundred sites.
 */
#ifndef LW_RECORD_MARKS_H
#define LW_RECORD_MARKS_H

/* Any thread; the name is copied. A name too many is counted as dropped. */
void lw_marks_pass(const char *name);

#endif
