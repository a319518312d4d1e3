/* SPDX-License-Identifier: MIT */
/* fail.h - the end of this program where it cannot do what was asked: one line, and a status. */
#ifndef LW_SNAPSHOT_FAIL_H
#define LW_SNAPSHOT_FAIL_H

/* From now on with this status; 1 before. */
void fail_with(int status);

__attribute__((noreturn)) void fail(const char *why);

#endif
