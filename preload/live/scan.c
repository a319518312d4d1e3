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
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/live/scan_keeper.h"
#include "preload/live/scan_knock.h"
#include "preload/live/scan_memory.h"
#include "preload/live/serve.h"
#include "preload/share/box.h"

enum { WALL = 0x40000000 /* __WALL */, MOST_WAIT_MS = 30000 };

static struct lw_scan_plan plan LW_ROOM; /* of the scan under way; there is one at a time */
static uint32_t is_starting;	 /* taken by exchange; held while keeper and plan are looked at */
static int32_t keeper;		 /* its pid, to be reaped; 0 none */
static const struct lw_options *settings;
static uintptr_t first_descriptor; /* of the thread that brought us up */
static bool is_first_main;
static uint64_t last_ns;	 /* when the last scan of the running process began */

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

void lw_scan_init(const struct lw_options *options)
{
	settings = options;
	lw_box->scan.knock_pc = (uintptr_t)lw_scan_knock;
	first_descriptor = lw_thread_pointer();
	is_first_main = lw_sys_gettid() == lw_sys_getpid();
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

static void fill_plan(uint32_t flags, const struct lw_options *options)
{
	plan.freeze = options->freeze;
	plan.descriptor = lw_thread_pointer();
	plan.tid = lw_sys_gettid();
	plan.pid = lw_own.pid;
	plan.parent = 0;
	plan.main_descriptor = is_first_main ? first_descriptor : 0;
	plan.flags = flags;
	plan.nr_threads = 0;
	plan.is_shared = false;
}

static void add_caller(const uint64_t regs[LW_NR_REGS])
{
	plan.threads[0] = (struct lw_scan_thread){ .tid = plan.tid, .sp = regs[LW_REG_SP] };
	__builtin_memcpy(plan.threads[0].frame, regs, sizeof(plan.threads[0].frame));
	plan.nr_threads = 1;
}

/* False: a keeper is at work still. One that the program has reaped by chance counts as gone. */
static bool is_keeper_gone(int32_t options)
{
	if (keeper && lw_syscall(SYS_wait4, keeper, 0, options | WALL, 0) == 0)
		return false;
	keeper = 0;
	return true;
}

static void wait_for_keeper(void)
{
	for (uint32_t waited_ms = 0; !is_keeper_gone(1 /* WNOHANG */) && waited_ms < MOST_WAIT_MS; waited_ms++)
		lw_sys_sleep_ms(1);
}

void lw_scan_at_exit(const uint64_t regs[LW_NR_REGS], const struct lw_options *options)
{
	uint64_t needed_bytes, mask;

	lw_sys_block_signals(&mask);
	(void)__atomic_exchange_n(&is_starting, 1, __ATOMIC_ACQUIRE); /* no other begins any more */
	wait_for_keeper();
	fill_plan(LW_SCAN_AT_EXIT, options);
	add_caller(regs);
	if (keeper) {
		lw_scan_refuse(LW_SCAN_WHY_TIME);
	} else if (!lw_serve_may_clone()) {
		lw_scan_refuse(LW_SCAN_WHY_CLONE);
	} else if (count_threads() > 1) {
		keeper = lw_scan_keeper_start(&plan, true);
		if (keeper < 0)
			lw_scan_refuse(LW_SCAN_WHY_CLONE);
		wait_for_keeper();
	} else if (needed_bytes = lw_scan_needed_bytes(), !lw_scan_has_memory(needed_bytes)) {
		lw_scan_refuse(LW_SCAN_WHY_MEMORY);
	} else {
		plan.is_shared = lw_scan_may_share(needed_bytes);
		plan.hot = lw_hot;
		plan.step = LW_SCAN_STEP_ONLY;
		lw_box->scan.began_mono_ns = plan.stopped_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
		lw_scan_once(&plan, NULL);
	}
	lw_sys_restore_signals(&mask);
}

static bool begin_now(void)
{
	for (uint32_t waited_ms = 0; waited_ms < MOST_WAIT_MS; waited_ms++) {
		if (!__atomic_exchange_n(&is_starting, 1, __ATOMIC_ACQUIRE))
			return true;
		lw_sys_sleep_ms(1);
	}
	return false;
}

static void sum_lost(uint64_t *bytes, uint64_t *blocks)
{
	for (uint32_t site = 0; site < lw_load_acquire(&lw_own.nr_sites); site++) {
		const struct lw_scan_site *found = lw_box_scan(site);

		*bytes += found->lost_bytes + found->indirect_bytes;
		*blocks += found->lost_blocks + found->indirect_blocks;
	}
}

bool lw_scan_now(const uint64_t regs[LW_NR_REGS], uint64_t *bytes, uint64_t *blocks)
{
	uint32_t before = lw_load(&lw_box->scan.nr_scans);
	bool is_done = false;
	uint64_t mask;

	*bytes = *blocks = 0;
	if (settings->scan == LW_SCAN_OPTION_NEVER || !lw_serve_may_clone() || !begin_now())
		return false;
	lw_sys_block_signals(&mask);
	wait_for_keeper();
	if (!keeper && lw_load(&lw_box->state) == LW_STATE_RUNNING) {
		fill_plan(0, settings);
		add_caller(regs);
		keeper = lw_scan_keeper_start(&plan, true);
		keeper = keeper < 0 ? 0 : keeper;
		wait_for_keeper();
		is_done = lw_load_acquire(&lw_box->scan.nr_scans) != before &&
			  lw_load_acquire(&lw_box->scan.state) == LW_SCAN_DONE;
	}
	lw_sys_restore_signals(&mask);
	lw_store_release(&is_starting, 0);
	if (is_done)
		sum_lost(bytes, blocks);
	return is_done;
}

static bool is_due(const struct lw_options *options)
{
	uint64_t now_ns;

	if (lw_load(&lw_box->scan.request) != lw_load(&lw_box->scan.served))
		return true;
	if (!options->scan_every)
		return false;
	now_ns = lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE);
	if (now_ns - lw_load(&last_ns) < options->scan_every * UINT64_C(1000000000))
		return false;
	return last_ns || now_ns - lw_hot.start_ns >= options->scan_every * UINT64_C(1000000000);
}

static void start_keeper(const struct lw_options *options)
{
	uint32_t why = options->scan == LW_SCAN_OPTION_NEVER ? LW_SCAN_WHY_OFF : LW_SCAN_WHY_CLONE;
	int pid = -EPERM;

	fill_plan(0, options);
	if (why != LW_SCAN_WHY_OFF && lw_serve_may_clone())
		pid = lw_scan_keeper_start(&plan, false);
	if (pid > 0) {
		lw_store(&keeper, pid);
		return;
	}
	lw_scan_refuse(why);
	lw_store_release(&lw_box->scan.served, lw_load(&lw_box->scan.request));
}

LW_COLD void lw_scan_look(const struct lw_options *options)
{
	if (!lw_box || lw_sandboxed() || (!lw_load(&keeper) && !is_due(options)))
		return;
	/* a child that only borrows our memory (vfork) starts and reaps nothing */
	if (lw_own.pid != lw_sys_getpid() || __atomic_exchange_n(&is_starting, 1, __ATOMIC_ACQUIRE))
		return;
	if (is_keeper_gone(1 /* WNOHANG */) && is_due(options) && lw_load(&lw_box->state) == LW_STATE_RUNNING) {
		lw_store(&last_ns, lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE));
		start_keeper(options);
	}
	lw_store_release(&is_starting, 0);
}

void lw_scan_knocked(void)
{
	if (settings)
		lw_scan_look(settings);
}

void lw_scan_after_death(void)
{
	if (settings->scan != LW_SCAN_OPTION_EXIT || !lw_scan_has_memory(lw_scan_needed_bytes()))
		return;
	plan.hot = lw_hot;
	plan.pid = lw_own.pid;
	plan.parent = 0;
	plan.tid = 0;
	plan.flags = LW_SCAN_AT_EXIT;
	plan.step = LW_SCAN_STEP_ONLY;
	plan.descriptor = first_descriptor;
	plan.list = NULL;
	plan.vectors = NULL;
	plan.nr_threads = 0;
	plan.is_shared = false;
	lw_box->scan.began_mono_ns = plan.stopped_ns = lw_sys_clock_ns(CLOCK_MONOTONIC);
	lw_scan_once(&plan, NULL);
}

void lw_scan_forked(void)
{
	lw_box->scan.knock_pc = (uintptr_t)lw_scan_knock;
	is_starting = 0;
	is_first_main = false;
	keeper = 0;
	last_ns = 0;
}
