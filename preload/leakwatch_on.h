/* SPDX-License-Identifier: MIT */
/*
 * leakwatch_on.h - from here on `new` and `delete` tell their file and line, until leakwatch_off.h.
 *
 * Include it after all other headers, as often as wanted. Declarations of operator new and operator
 * delete, `= delete`, `::new`, `::delete`, and new right after a cast in the old form or after delete,
 * as in (T *)new U, are errors between the two: put leakwatch_off.h before them, and this again behind,
 * or write (T *)(new U). Without -DLEAKWATCH: no effect.
 */
#include "leakwatch.h"

#if defined(LEAKWATCH) && defined(__cplusplus)
#undef new
#undef delete
#ifdef __clang__ /* it warns of keywords that are mapped, and here it is meant */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define new LEAKWATCH_NEW_
#define delete LEAKWATCH_DELETE_
#ifdef __clang__
#pragma clang diagnostic pop
#endif
#endif
