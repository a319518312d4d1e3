/* SPDX-License-Identifier: MIT */
/* guard.c - the storage of what each thread carries. */
#include "preload/base/guard.h"

LW_TLS struct lw_thread lw_self;
