/* SPDX-License-Identifier: MIT */
/*
 * scan.c - when a scan is made, and by whom; see scan.h.
 *
 * No clone of ours has an exit signal, so that neither SIGCHLD nor a plain wait() of the program tells of
 * it; no atfork handler runs. Whoever started one reaps it with __WALL, and kills it when its time is over.
 */
#include "preload/live/scan.h"

#include <errno.h>
#include <link.h>

#include "preload/base/real.h"
#include "preload/base/sys.h"
#include "preload/live/scan_keeper.h"
#include "preload/share/box.h"

enum { WALL = 0x40000000 /* __WALL */ };

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

/* Threads of this process; 1 where it cannot be told. */
static uint64_t count_threads(void)
{
	struct stat task;

	return lw_syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &task, 0) == 0 && task.st_nlink > 2
			       ? task.st_nlink - 2
			       : 1;
}

void lw_scan_at_exit(uintptr_t sp)
{
	uint64_t mask;
	int keeper;

	plan.descriptor = lw_thread_pointer();
	plan.tid = lw_sys_gettid();
	plan.pid = lw_box->pid;
	plan.flags = LW_SCAN_AT_EXIT;
	plan.threads[0] = (struct lw_scan_thread){ .tid = plan.tid, .sp = sp };
	plan.nr_threads = 1;
	lw_sys_block_signals(&mask);
	if (count_threads() > 1) {
		keeper = lw_scan_keeper_start(&plan, true);
		while (keeper > 0 && lw_syscall(SYS_wait4, keeper, 0, WALL, 0) == -EINTR)
			;
		if (keeper < 0)
			lw_scan_refuse(LW_SCAN_WHY_CLONE);
	} else {
		plan.hot = lw_hot;
		plan.step = LW_SCAN_STEP_ONLY;
		lw_box->scan.began_mono_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
		lw_scan_once(&plan, NULL);
	}
	lw_sys_restore_signals(&mask);
}
