/* SPDX-License-Identifier: MIT */
/*
 * tty.h - the terminal a process had as stderr, found again after its death.
 *
 * Nothing of a target is held open while it lives, so the terminal is looked for by the device and
 * inode that the region names. A pseudo-terminal's number is used again, with the same inode
 * number, when the first one is closed: a node that changed since the process was started is not
 * taken.
 */
#ifndef LW_CLEANER_TTY_H
#define LW_CLEANER_TTY_H

#include <stdint.h>

/* A descriptor to write to, or -1. */
int tty_open(uint64_t dev, uint64_t ino, uint64_t started_real_ns);

#endif
