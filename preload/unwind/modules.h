/* SPDX-License-Identifier: MIT */
/*
 * modules.h - loaded objects: which module a PC is in, and what happens when one goes.
 *
 * Modules are entered in the region when a new stack first has a frame in them, with load bias,
 * range, path and build-id, and stay there when they are unloaded, so that their frames are named
 * correctly at the end. A module that comes back at the same place gets its old number again.
 *
 * Around every dlclose: lw_modules_unload_begin(), the real call, lw_modules_unload_end(). Between
 * the two no rule and no memo is kept, because another thread may load other code at an address
 * that has just become free; afterwards everything that was derived from vanished code is void.
 */
#ifndef LW_UNWIND_MODULES_H
#define LW_UNWIND_MODULES_H

#include "preload/base/base.h"
#include "preload/unwind/unwind.h"

/* Fills stack->modules. Takes no lock for modules that are known. */
void lw_modules_resolve(struct lw_stack *stack);

void lw_modules_unload_begin(void);
/* on_change(true): some module is gone, its is_unloaded is set; called before code may use tables
 * again. */
void lw_modules_unload_end(void (*on_change)(void));

/* A module that had been unloaded was found again since the last call? Then sites may revive. */
bool lw_modules_take_revived(void);

#endif
