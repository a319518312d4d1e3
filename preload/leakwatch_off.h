/* SPDX-License-Identifier: MIT */
/* leakwatch_off.h - `new` and `delete` are the language's again; see leakwatch_on.h. */
#if defined(LEAKWATCH) && defined(__cplusplus)
#undef new
#undef delete
#endif
