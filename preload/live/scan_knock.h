/* SPDX-License-Identifier: MIT */
/*
 * scan_knock.h - the door for a viewer that wants a scan of a process which never comes to our hooks: it waits in a system
 * call, or computes. The viewer stops a thread by ptrace, has it run lw_scan_knock, and puts its registers back.
 */
#ifndef LW_LIVE_SCAN_KNOCK_H
#define LW_LIVE_SCAN_KNOCK_H

/*
 * Entered by a jump, on whatever stack and with whatever registers, all signals blocked: goes to a stack of its own, looks
 * whether a scan is wanted, and stops at a breakpoint instruction. Never called.
 */
void lw_scan_knock(void);

#endif
