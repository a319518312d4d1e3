/* SPDX-License-Identifier: MIT */
/*
 * scan_park.c - parking threads in a signal handler; see scan_park.h.
 *
 * The handler makes raw system calls only, touches no lock and no errno, and leaves by itself after a while,
 * whatever becomes of the process that sent the signal. A signal that comes when nobody parks anybody is
 * nothing. Under a debugger no signal is sent: it would stop there.
 */
#include "preload/live/scan_park.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "preload/base/sys.h"
#include "preload/live/scan_tasks.h"
#include "preload/share/region.h"

enum {
	LAST_SIGNAL = 64,
	FIRST_SIGNAL = 36, /* libc keeps the first two real-time signals, valgrind and others the next */
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	MOST_FRAME_BYTES = 16384, /* of a signal: 3 KiB with 512-bit registers, 11 KiB with tiles */
	MOST_PARKED_MS = 500,
	PATIENCE_MS = 50,
	STATUS_BYTES = 4096,
	NR_ARGUMENTS = 6, /* of a system call */
	ACTION_FLAGS = 4 | 0x08000000 | 0x10000000 | 0x04000000, /* SIGINFO, ONSTACK, RESTART, RESTORER */
};

/* struct sigaction of the kernel */
struct action {
	void *handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* Where a thread waited in a call before it was sent the signal; what the kernel says of it. */
struct waiting {
	int32_t tid;
	int64_t call;
	uint64_t sp, pc;
};

static struct {
	uint32_t is_open;  /* threads are to park; also the futex they wait on */
	uint32_t nr_taken; /* slots */
	uint32_t nr_ready;
	int signal;	   /* 0: none chosen yet */
	uint32_t nr_waiting;
	struct waiting waiting[LW_SCAN_MAX_THREADS];
	struct lw_scan_thread slots[LW_SCAN_MAX_THREADS];
} park LW_ROOM;

static __attribute__((naked, used)) void return_from_signal(void)
{
	__asm__(LW_SIGNAL_RETURN);
}

static void wait_there(void)
{
	struct timespec slice = { .tv_nsec = 1000000 };

	for (int ms = 0; ms < MOST_PARKED_MS && lw_load_acquire(&park.is_open); ms++)
		(void)lw_syscall(SYS_futex, &park.is_open, FUTEX_WAIT, 1, &slice, 0, 0);
}

/*
 * The frame of the signal, with all vector registers in it, lies below the red zone: it counts too. On a
 * signal stack of its own it counts as any memory does.
 */
static uintptr_t start_of_stack(const void *context)
{
	uintptr_t sp = lw_context_sp(context) - LW_RED_ZONE_BYTES, frame = (uintptr_t)context;

	return frame < sp && sp - frame < MOST_FRAME_BYTES ? frame : sp;
}

/* The call that a thread comes back from. It may have gone on to another since it was looked at. */
static int64_t call_of(const ucontext_t *context)
{
	int64_t call = lw_context_call(context);
	int32_t tid = call < 0 ? lw_sys_gettid() : 0;

	for (uint32_t i = 0; call < 0 && i < lw_load_acquire(&park.nr_waiting); i++) {
		const struct waiting *waiting = &park.waiting[i];

		if (waiting->tid == tid && waiting->pc == lw_context_pc(context) && waiting->sp == lw_context_sp(context))
			call = waiting->call;
	}
	return call;
}

/*
 * SA_RESTART does not bring back every call (signal(7)). A signal of the program's that came meanwhile is a reason
 * for EINTR: then it stays.
 */
static void mend(ucontext_t *context)
{
	int64_t call = lw_context_result(context) == -EINTR ? call_of(context) : -1;
	uint64_t pending = 0, blocked;

	if (!lw_scan_may_repeat(call))
		return;
	__builtin_memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	if (lw_syscall(SYS_rt_sigpending, &pending, sizeof(pending)) == 0 && !(pending & ~blocked))
		lw_context_repeat(context, call);
}

static void stay(const void *context)
{
	uint32_t slot = __atomic_fetch_add(&park.nr_taken, 1, __ATOMIC_RELAXED);

	if (slot >= LW_SCAN_MAX_THREADS)
		return;
	park.slots[slot].tid = lw_sys_gettid();
	park.slots[slot].nr_regs = lw_context_regs(context, park.slots[slot].regs);
	lw_context_regs_unwind(context, park.slots[slot].frame);
	park.slots[slot].sp = start_of_stack(context);
	(void)__atomic_fetch_add(&park.nr_ready, 1, __ATOMIC_RELEASE);
	wait_there();
}

static void on_signal(int number, void *info, void *context)
{
	(void)number;
	(void)info;
	if (lw_load_acquire(&park.is_open))
		stay(context);
	mend(context);
}

static bool install(void)
{
	struct action action = { (void *)(uintptr_t)on_signal, ACTION_FLAGS, return_from_signal, ~UINT64_C(0) }, there;

	for (int signal = LAST_SIGNAL; signal >= FIRST_SIGNAL; signal--) {
		if (lw_syscall(SYS_rt_sigaction, signal, 0, &there, 8) < 0)
			return false;
		if (park.signal == signal && there.handler == action.handler)
			return true;
		if (there.handler || (park.signal && signal != park.signal))
			continue;
		park.signal = lw_syscall(SYS_rt_sigaction, signal, &action, 0, 8) < 0 ? 0 : signal;
		return park.signal != 0;
	}
	return false;
}

static const char *parse_hex(const char *at, uint64_t *value)
{
	for (*value = 0; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
		*value = *value << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	return at;
}

static uint64_t parse_hex_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	uint64_t value = 0;

	for (at = at ? at + strlen(key) : ""; *at == ' ' || *at == '\t'; at++)
		;
	(void)parse_hex(at, &value);
	return value;
}

/* "232 0x4 0x7ffc.. ... SP PC" of /proc/PID/task/TID/syscall; "running" or "-1 SP PC" else */
static void note_waiting(int32_t pid, int32_t tid)
{
	static char text[STATUS_BYTES] LW_ROOM;
	struct waiting *waiting = &park.waiting[park.nr_waiting];
	const char *at;

	if (park.nr_waiting == LW_SCAN_MAX_THREADS || !lw_scan_task_read(pid, tid, "/syscall", text, sizeof(text)) ||
			text[0] < '0' || text[0] > '9')
		return;
	waiting->tid = tid;
	waiting->call = 0;
	for (at = text; *at >= '0' && *at <= '9'; at++)
		waiting->call = waiting->call * 10 + (*at - '0');
	for (int i = 0; (at = strstr(at, " 0x")) && i < NR_ARGUMENTS + 2; i++)
		at = parse_hex(at + 3, i < NR_ARGUMENTS + 1 ? &waiting->sp : &waiting->pc);
	lw_store_release(&park.nr_waiting, park.nr_waiting + 1);
}

/* Would the signal be taken at once, and by the program rather than its debugger? */
static bool may_send(int32_t pid, int32_t tid)
{
	static char text[STATUS_BYTES] LW_ROOM;

	if (!lw_scan_task_read(pid, tid, "/status", text, sizeof(text)))
		return false;
	return !(parse_hex_after(text, "SigBlk:") >> (park.signal - 1) & 1) && !parse_hex_after(text, "TracerPid:");
}

struct sending {
	int32_t pid, spare;
	uint32_t nr_sent, nr_left_out;
};

static int send_one(void *context, int32_t tid)
{
	struct sending *sending = context;

	if (tid == sending->spare || lw_scan_task_is_gone(sending->pid, tid))
		return 0;
	if (!may_send(sending->pid, tid)) {
		sending->nr_left_out++;
		return 0;
	}
	note_waiting(sending->pid, tid);
	if (lw_syscall(SYS_tgkill, sending->pid, tid, park.signal) == 0)
		sending->nr_sent++;
	else
		sending->nr_left_out++;
	return 0;
}

bool lw_scan_park(struct lw_scan_plan *plan, int32_t spare)
{
	struct sending sending = { plan->pid, spare, 0, 0 };
	uint32_t nr_ready;
	bool is_all;

	park.nr_taken = park.nr_ready = park.nr_waiting = 0;
	if (!install())
		return false;
	lw_store_release(&park.is_open, 1);
	if (lw_scan_tasks_visit(plan->pid, send_one, &sending) < 0)
		return false;
	for (int ms = 0; ms < PATIENCE_MS * 10 && lw_load_acquire(&park.nr_ready) < sending.nr_sent; ms++) {
		struct timespec pause = { .tv_nsec = 100000 };

		(void)lw_syscall(SYS_nanosleep, &pause, 0);
	}
	nr_ready = lw_load_acquire(&park.nr_ready);
	is_all = nr_ready >= sending.nr_sent && !sending.nr_left_out;
	for (uint32_t i = 0; i < nr_ready && plan->nr_threads < LW_SCAN_MAX_THREADS; i++)
		plan->threads[plan->nr_threads++] = park.slots[i];
	return is_all;
}

void lw_scan_unpark(void)
{
	lw_store_release(&park.is_open, 0);
	(void)lw_syscall(SYS_futex, &park.is_open, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}
