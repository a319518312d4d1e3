/* SPDX-License-Identifier: MIT */
/*
 * scan.c - starting a scanner and waiting for it; see scan.h.
 *
 * The clone has no exit signal, so that neither SIGCHLD nor a plain wait() of the program tells of it; no
 * atfork handler runs. Whoever started it reaps it with __WALL, and kills it when its time is over.
 */
#include "preload/live/scan.h"

#include <errno.h>
#include <link.h>

#include "preload/base/real.h"
#include "preload/base/sys.h"
#include "preload/live/scan_child.h"
#include "preload/share/box.h"

enum {
	LEAST_LIMIT_MS = 10000,
	LIMIT_MS_PER_GB = 5000,
	FIRST_POLL_US = 50,
	MAX_POLL_US = 5000,
	WALL = 0x40000000, /* __WALL */
	SIGNAL_KILL = 9,
};

static struct lw_scan_plan plan;

/* The thread-locals of the module whose malloc is the next in line. */
static int find_locals(struct dl_phdr_info *module, size_t bytes, void *unused)
{
	uintptr_t malloc_at = (uintptr_t)lw_real.malloc;
	bool is_allocator = false;
	size_t size = 0;

	(void)bytes;
	(void)unused;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && malloc_at - start < segment->p_memsz)
			is_allocator = true;
		if (segment->p_type == PT_TLS)
			size = segment->p_memsz;
	}
	if (!is_allocator || !module->dlpi_name[0])
		return is_allocator;
	if (module->dlpi_tls_data && size) {
		plan.locals_at = (intptr_t)((uintptr_t)module->dlpi_tls_data - lw_thread_pointer());
		plan.locals_bytes = size;
	}
	return 1;
}

void lw_scan_init(void)
{
	if (!lw_real.is_glibc && !lw_real.is_overridden)
		(void)dl_iterate_phdr(find_locals, NULL);
}

static void refuse(uint32_t why)
{
	lw_store(&lw_box->scan.why, why);
	lw_store_release(&lw_box->scan.state, LW_SCAN_REFUSED);
}

static void sleep_us(uint32_t us)
{
	struct timespec pause = { .tv_nsec = (long)us * 1000 };

	(void)lw_syscall(SYS_nanosleep, &pause, 0);
}

static uint64_t limit_ns(void)
{
	int64_t live = lw_load(&lw_box->live_bytes);
	uint64_t gigabytes = live > 0 ? (uint64_t)live >> 30 : 0;

	return (LEAST_LIMIT_MS + gigabytes * LIMIT_MS_PER_GB) * UINT64_C(1000000);
}

/* Until the scanner has ended, by itself or by us. */
static void wait_for(int scanner)
{
	uint64_t end_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) + limit_ns();
	uint32_t poll_us = FIRST_POLL_US, why = LW_SCAN_WHY_CRASH;

	while (lw_syscall(SYS_wait4, scanner, 0, 1 /* WNOHANG */ | WALL, 0) == 0) {
		if (why == LW_SCAN_WHY_CRASH && lw_sys_clock_ns(CLOCK_MONOTONIC) > end_ns) {
			(void)lw_syscall(SYS_kill, scanner, SIGNAL_KILL);
			why = LW_SCAN_WHY_TIME;
		}
		sleep_us(poll_us);
		poll_us = poll_us < MAX_POLL_US ? poll_us * 5 / 4 : MAX_POLL_US;
	}
	if (lw_load_acquire(&lw_box->scan.state) == LW_SCAN_RUNNING) {
		lw_store(&lw_box->scan.why, why);
		lw_store_release(&lw_box->scan.state, LW_SCAN_FAILED);
	}
}

/* The copy is made here; in it this does not return. */
static LW_NOINLINE int start(void)
{
	uint64_t before = lw_sys_clock_ns(CLOCK_MONOTONIC);
	int scanner;

	lw_box->scan.began_mono_ns = before;
	lw_store_release(&lw_box->scan.state, LW_SCAN_RUNNING);
	scanner = (int)lw_syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (scanner == 0)
		lw_scan_child(&plan);
	lw_box->scan.pause_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) - before;
	return scanner;
}

void lw_scan_at_exit(uintptr_t sp)
{
	uint64_t mask;
	int scanner;

	plan.hot = lw_hot;
	plan.descriptor = lw_thread_pointer();
	plan.tid = lw_sys_gettid();
	plan.pid = lw_box->pid;
	plan.flags = LW_SCAN_AT_EXIT;
	plan.threads[0] = (struct lw_scan_thread){ plan.tid, sp };
	plan.nr_threads = 1;
	lw_sys_block_signals(&mask);
	scanner = start();
	if (scanner > 0)
		wait_for(scanner);
	else
		refuse(LW_SCAN_WHY_CLONE);
	lw_sys_restore_signals(&mask);
}
