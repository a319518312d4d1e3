/* SPDX-License-Identifier: MIT */
/*
 * state.h - is a process alive, and if not, how did it end: as far as its records tell. Pure.
 *
 * A process says itself that it exits. That it was killed only others see: who reads its region when it is gone
 * says so in the last record (LW_BYE_GONE), so that a file of records tells it for ever.
 */
#ifndef LW_SNAPSHOT_STATE_H
#define LW_SNAPSHOT_STATE_H

#include "snapshot/model/model.h"

/* As in JSON: "live", "exit", "_exit", "quick_exit", "killed", "exec". Live is also what is only known to have been. */
const char *state_name(const struct model *model);

/* For people, after its name: "exited", "was killed" ...; NULL: it lives. */
const char *state_end(const struct model *model);
/* The same of a region alone: enum lw_end, and what its reader saw (LW_BYE_*). */
const char *state_end_of(uint32_t end_kind, uint32_t flags);

#endif
