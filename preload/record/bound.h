/* SPDX-License-Identifier: MIT */
/*
 * bound.h - is there code in this process whose malloc is not ours?
 *
 * A library opened with RTLD_DEEPBIND finds the C library's malloc before ours. What it allocates we do
 * not see, and when the program releases such a block its address may be that of an older one whose
 * release we saw: that looks like a double free, and is none.
 */
#ifndef LW_RECORD_BOUND_H
#define LW_RECORD_BOUND_H

#include "preload/base/base.h"

/*
 * Looks at what the allocation functions' slots of every loaded object hold. Slow; for a moment when an
 * accusation hangs on it. True also when it cannot be told, since objects are just being loaded.
 */
LW_COLD bool lw_bound_elsewhere(void);

#endif
