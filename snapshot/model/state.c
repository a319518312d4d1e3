/* SPDX-License-Identifier: MIT */
/* state.c - names and words for how a process ended; see state.h. */
#include "snapshot/model/state.h"

enum { KILLED = LW_END_QUICK_EXIT + 1, EXEC, NR_STATES };

static const struct {
	const char *name, *end;
} states[NR_STATES] = {
	[LW_END_NONE] = {"live", NULL},
	[LW_END_EXIT] = {"exit", "exited"},
	[LW_END__EXIT] = {"_exit", "ended by _exit"},
	[LW_END_QUICK_EXIT] = {"quick_exit", "ended by quick_exit"},
	[KILLED] = {"killed", "was killed"},
	[EXEC] = {"exec", "has started another program (exec)"},
};

static unsigned state_of(uint32_t end_kind, uint32_t flags)
{
	if (flags & LW_BYE_EXEC)
		return EXEC;
	if (end_kind > LW_END_NONE && end_kind <= LW_END_QUICK_EXIT)
		return end_kind;
	return flags & LW_BYE_GONE ? KILLED : LW_END_NONE;
}

const char *state_name(const struct model *model)
{
	return states[state_of(model->hello.end_kind, model->bye.flags)].name;
}

const char *state_end(const struct model *model)
{
	return state_end_of(model->hello.end_kind, model->bye.flags);
}

const char *state_end_of(uint32_t end_kind, uint32_t flags)
{
	return states[state_of(end_kind, flags)].end;
}
