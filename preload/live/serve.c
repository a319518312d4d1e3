/* SPDX-License-Identifier: MIT */
/* serve.c - starting and reaping the helper; see serve.h. */
#include "preload/live/serve.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "preload/base/sandbox.h"
#include "preload/base/mem.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/live/helper.h"
#include "preload/share/box.h"

enum {
	STACK_BYTES = 128 << 10,
	/* libc's thread-locals lie below the thread pointer; ours too */
	TLS_BYTES = 32 << 10,
	TCB_BYTES = 8 << 10,
	ANY_CHILD = 0x40000000, /* __WALL */
};

struct room {
	_Alignas(16) unsigned char stack[STACK_BYTES];
	_Alignas(64) unsigned char tls[TLS_BYTES];
	_Alignas(64) unsigned char tcb[TCB_BYTES];
};

static struct room *room;     /* mapped once, used by one helper after the other */
static uint32_t is_starting;  /* taken by exchange */
static int32_t running;	      /* tid of the helper; the kernel clears it when the helper has left our memory */
static int32_t to_be_reaped;  /* its pid; 0 none. Changed while is_starting is held */

bool lw_serve_may_clone(void)
{
	char own[64], next[64];
	long own_bytes = lw_syscall(SYS_readlink, "/proc/thread-self/ns/pid", own, sizeof(own));
	long next_bytes = lw_syscall(
			SYS_readlink, "/proc/thread-self/ns/pid_for_children", next, sizeof(next));

	return own_bytes > 0 && own_bytes == next_bytes && !memcmp(own, next, (size_t)own_bytes);
}

static void reap(void)
{
	if (to_be_reaped && !lw_load(&running) &&
			lw_syscall(SYS_wait4, to_be_reaped, 0, 1 /* WNOHANG */ | ANY_CHILD, 0))
		to_be_reaped = 0;
}

static void start(void)
{
	unsigned long flags = CLONE_VM | CLONE_FILES | CLONE_UNTRACED | CLONE_SETTLS |
			      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
	uint64_t mask;
	long pid;

	if (!room)
		room = lw_mem_map(sizeof(*room), "leakwatch helper");
	if (!room || !lw_serve_may_clone() || !lw_helper_prepare()) {
		lw_store(&lw_box->is_watched, 0);
		return;
	}
	lw_thread_pointer_fill(room->tcb);
	lw_sys_block_signals(&mask);
	pid = lw_sys_clone(flags, room->stack + STACK_BYTES, &running, room->tcb, lw_helper_run, NULL);
	lw_sys_restore_signals(&mask);
	if (pid > 0) {
		to_be_reaped = (int32_t)pid;
		lw_bump(&lw_box->nr_helpers, 1);
	} else {
		lw_store(&lw_box->is_watched, 0); /* the viewer reads the region then */
	}
}

LW_COLD void lw_serve_look(void)
{
	if (lw_load(&running) || lw_sandboxed() || (!lw_load(&to_be_reaped) && (!lw_box || !lw_load(&lw_box->is_watched))))
		return;
	/* a child that only borrows our memory (vfork) starts and reaps nothing */
	if (lw_sandboxed() || !lw_box || lw_own.pid != lw_sys_getpid() || __atomic_exchange_n(&is_starting, 1, __ATOMIC_ACQUIRE))
		return;
	reap();
	if (!to_be_reaped && lw_load(&lw_box->is_watched) && lw_load(&lw_own.msqid) >= 0 &&
			lw_load(&lw_box->state) == LW_STATE_RUNNING)
		start();
	lw_store_release(&is_starting, 0);
}

void lw_serve_forked(void)
{
	is_starting = 0;
	running = 0;
	to_be_reaped = 0;
	lw_helper_forked();
}
