/* SPDX-License-Identifier: MIT */
/* network.h - may symbols be looked up on a debuginfod server? Only with LEAKWATCH_DEBUGINFOD=1. */
#ifndef SNAPSHOT_SYMBOLS_NETWORK_H
#define SNAPSHOT_SYMBOLS_NETWORK_H

#include <stdbool.h>

/* Reads the wish; without it takes DEBUGINFOD_URLS out of the environment. */
void network_init(void);

#endif
