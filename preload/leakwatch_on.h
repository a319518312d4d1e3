/* SPDX-License-Identifier: MIT */
/*
 * leakwatch_on.h - from here on `new` and `delete` tell their file and line, until leakwatch_off.h.
 *
 * Include it after all other headers, as often as wanted. Declarations of operator new and operator
 * delete, `= delete`, and casts in the old form before new, as in (T *)new U, cannot stand between
 * the two: put leakwatch_off.h before them, and this again behind. Without -DLEAKWATCH: no effect.
 */
#include "leakwatch.h"

#if defined(LEAKWATCH) && defined(__cplusplus)
#undef new
#undef delete
#define new LEAKWATCH_NEW_
#define delete LEAKWATCH_DELETE_
#endif
