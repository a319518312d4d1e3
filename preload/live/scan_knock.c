/* SPDX-License-Identifier: MIT */
/*
 * scan_knock.c - see scan_knock.h. The thread may have been stopped anywhere, also inside malloc or inside our own code:
 * nothing of libc is used, and in the latter case nothing is done. One viewer knocks at a time.
 */
#include "preload/live/scan_knock.h"

#include "preload/base/guard.h"
#include "preload/base/sys.h"
#include "preload/live/scan.h"

enum { STACK_BYTES = 32768 };

__attribute__((used)) static unsigned char knock_stack[STACK_BYTES] LW_ROOM __attribute__((aligned(16)));

__attribute__((used)) static void look(void)
{
	if (lw_self.gate != LW_GATE_BUSY && !lw_self.is_late)
		lw_scan_knocked();
}

__attribute__((naked)) void lw_scan_knock(void)
{
	__asm__(LW_KNOCK_ENTRY("knock_stack+32768", "look"));
}
