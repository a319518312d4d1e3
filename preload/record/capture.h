/* SPDX-License-Identifier: MIT */
/*
 * capture.h - the stack of an event that no memo knew: walked, interned, remembered.
 */
#ifndef LW_RECORD_CAPTURE_H
#define LW_RECORD_CAPTURE_H

#include "preload/base/base.h"
#include "preload/base/guard.h"
#include "preload/unwind/unwind.h"

/* The site (0: no room for it). memo_key: it will come again, so the thread's memo takes it under this; 0 not. */
uint32_t lw_capture(struct lw_thread *thread, const struct lw_frame *frame, uint32_t key, uint64_t memo_key);

#endif
