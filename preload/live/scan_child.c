/* SPDX-License-Identifier: MIT */
/*
 * scan_child.c - one scan, from the table of blocks to the results in the region; see scan_child.h.
 *
 * The maps are read before anything is mapped, so that the scanner's own tables are not in them. Results
 * are gathered privately and written in one go between two changes of `seq`.
 */
#include "preload/live/scan_child.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "preload/base/real.h"
#include "preload/base/sys.h"
#include "preload/live/scan_chain.h"
#include "preload/live/scan_link.h"
#include "preload/live/scan_roots.h"
#include "preload/record/blocks_visit.h"
#include "preload/record/sites.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"
#include "preload/unwind/cfi.h"

/* A run that is over sooner has no site that grows, so nobody asks who holds it. */
enum { SOON_MS = 2000, NICENESS = 10 };

static struct lw_chain chains[LW_MAX_CHAINS];
static uint32_t nr_chains;

extern int _IO_file_doallocate(void *file) __attribute__((weak)); /* of libc; no header declares it */

#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif

enum { SITE_UNKNOWN, SITE_PLAIN, SITE_LASTING, SITE_BARE };

/* A buffer of stdio is as long as its file's blocks, or BUFSIZ: a power of two. */
enum { LEAST_BUFFER_BYTES = 512 };

struct gather {
	struct lw_scan_marks marks;
	struct lw_scan_roots roots;
	uint8_t *site_kinds;
	struct lw_scan_tally *tallies; /* NULL: nobody asks for holders */
	uintptr_t buffers_from, buffers_to; /* the function of libc that allocates the buffers of stdio */
	uint64_t half_ms; /* half of the run */
	uint32_t nr_sites;
	uint64_t live_blocks, live_bytes;
};

static bool is_shared; /* our memory is the program's */

static __attribute__((noreturn)) void leave(void)
{
	if (is_shared)
		lw_scan_rooms_free();
	for (;;)
		(void)lw_syscall(SYS_exit_group, 0);
}

static __attribute__((noreturn)) void fail(uint32_t state, uint32_t why)
{
	lw_store(&lw_box->scan.why, why);
	lw_store_release(&lw_box->scan.state, state);
	lw_store_release(&lw_box->scan.outcome, LW_SCAN_OUTCOME_BAD);
	leave();
}

/* A copy of a large process must not be in anybody's way: not kept alive, not dumped, first to go when memory is out. */
static void settle(void)
{
	static const int limits[] = { RLIMIT_AS, RLIMIT_DATA };
	int fd = is_shared ? -1 : lw_sys_open("/proc/self/oom_score_adj", O_WRONLY);
	struct rlimit limit;

	if (fd >= 0) {
		(void)lw_sys_write(fd, "1000", 4);
		lw_sys_close(fd);
	}
	for (size_t i = 0; i < LW_ARRAY_LENGTH(limits); i++) {
		if (lw_syscall(SYS_prlimit64, 0, limits[i], 0, &limit) < 0)
			continue;
		limit.rlim_cur = limit.rlim_max;
		(void)lw_syscall(SYS_prlimit64, 0, limits[i], &limit, 0);
	}
}

/*
 * Blocks the loader allocates for itself (thread-local storage, its lists) are pointed to in ways of its own; and
 * another allocator's own variables are no roots, so what it allocates through our hooks has none.
 */
static bool is_of_a_runtime(const struct gather *gather, uint32_t id)
{
	const struct lw_site *site = lw_box_site(id);
	const uint64_t *pcs = lw_sites_pcs(id);
	const struct lw_module *module;
	const char *path, *slash;
	uint32_t nr_frames = lw_box_nr_frames(site);
	uint16_t number;

	if (!nr_frames)
		return false;
	if (!gather->roots.is_glibc && pcs[0] - gather->roots.allocator_start <
			gather->roots.allocator_end - gather->roots.allocator_start)
		return true;
	number = ((const uint16_t *)(pcs + nr_frames))[0];
	if (number >= lw_own.nr_modules)
		return false;
	module = lw_box_module(number);
	path = lw_box_pool(module->path_off);
	slash = strrchr(path, '/');
	path = slash ? slash + 1 : path;
	return !strncmp(path, "ld-linux", 8) || !strncmp(path, "ld-2.", 5) || !strncmp(path, "ld.so", 5);
}

/* What the program asked to ignore is meant to stay, with all that it points to. */
static bool is_lasting(const struct gather *gather, uint32_t id)
{
	return lw_box_site(id)->flags & LW_SITE_IGNORED || is_of_a_runtime(gather, id);
}

/*
 * Buffers of stdio are not cleared when they are allocated, and often made of what was freed before: the old words in them
 * would hide leaks.
 */
static bool is_bare(const struct gather *gather, uint32_t id)
{
	uint64_t pc = lw_box_nr_frames(lw_box_site(id)) ? lw_sites_pcs(id)[0] : 0;

	return pc > gather->buffers_from && pc <= gather->buffers_to;
}

/* Asked where it matters only: most sites are never looked at. */
static uint8_t site_kind(struct gather *gather, uint32_t id)
{
	uint8_t *kind = &gather->site_kinds[id];

	if (id >= gather->nr_sites)
		return SITE_UNKNOWN;
	if (*kind == SITE_UNKNOWN)
		*kind = is_lasting(gather, id) ? SITE_LASTING : is_bare(gather, id) ? SITE_BARE : SITE_PLAIN;
	return *kind;
}

static struct lw_blocks_room visit_room LW_ROOM;

static void tally(struct lw_scan_tally *tally, const struct lw_block *block, uint64_t half_ms)
{
	tally->bytes += block->bytes;
	tally->young_bytes += lw_block_birth_ms(block->birth) > half_ms ? block->bytes : 0;
}

LW_INLINE void add_block(void *context, uintptr_t address, uint64_t *at, bool is_coarse)
{
	struct gather *gather = context;
	const struct lw_block block = lw_blocks_unpack(at, is_coarse);
	uint64_t marks = block.is_inherited ? LW_SCAN_UNJUDGED : 0;

	if (gather->tallies && block.site < gather->nr_sites && !block.is_inherited)
		tally(&gather->tallies[block.site], &block, gather->half_ms);
	if (block.bytes >= LEAST_BUFFER_BYTES && !(block.bytes & (block.bytes - 1)) && site_kind(gather, block.site) == SITE_BARE)
		marks |= LW_SCAN_BARE;
	gather->live_blocks += !block.is_inherited;
	gather->live_bytes += block.is_inherited ? 0 : block.bytes;
	lw_scan_index_add(&gather->marks.index, address, block.bytes, block.site, marks);
}

/* Of unreachable blocks. */
static void mark_lasting(struct gather *gather)
{
	struct lw_scan_marks *marks = &gather->marks;

	lw_scan_mark_narrow(marks);
	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];

		if (!(entry->start & (LW_SCAN_REACHED | LW_SCAN_UNOWNED)) &&
				site_kind(gather, lw_scan_site(entry)) == SITE_LASTING)
			lw_scan_mark_entry(marks, at);
	}
	lw_scan_mark_rest(marks);
	lw_scan_mark_narrow(marks);
}

static void know_allocator(struct lw_scan_roots *roots)
{
	const uint64_t *dropped = lw_box->dropped;
	struct dl_find_object module;

	roots->is_glibc = lw_real.is_glibc && !lw_real.is_overridden;
	roots->has_unseen = lw_real.is_overridden || !lw_wrong_is_all_known() || dropped[LW_DROP_BLOCKS] || dropped[LW_DROP_REENTRANT] ||
			    dropped[LW_DROP_UNTRACKED];
	if (lw_real.is_overridden || _dl_find_object((void *)(uintptr_t)lw_real.malloc, &module))
		return;
	if (!module.dlfo_link_map->l_name[0]) /* the program itself */
		return;
	roots->allocator_start = (uintptr_t)module.dlfo_map_start;
	roots->allocator_end = (uintptr_t)module.dlfo_map_end;
}

static void write_results(struct gather *gather, const struct lw_scan_site *sites, const struct lw_scan_plan *plan)
{
	struct lw_scan *scan = &lw_box->scan;
	struct lw_scan_marks *marks = &gather->marks;

	bool is_first = !scan->seq;

	lw_store(&scan->seq, scan->seq | 1);
	lw_fence(__ATOMIC_RELEASE);
	for (uint32_t id = 0; !is_first && id < gather->nr_sites; id++) {
		if (memcmp(lw_box_scan(id), &sites[id], sizeof(sites[id])) != 0)
			*lw_box_scan(id) = sites[id];
	}
	for (uint32_t i = 0; is_first && i < marks->nr_lost_sites; i++)
		*lw_box_scan(marks->lost_sites[i]) = sites[marks->lost_sites[i]];
	scan->flags = plan->flags | (gather->roots.nr_unknown_stacks ? LW_SCAN_APPROXIMATE : 0) |
		      (plan->step == LW_SCAN_STEP_SECOND ? LW_SCAN_CONFIRMED : 0);
	for (uint32_t i = 0; i < nr_chains; i++)
		*lw_box_chain(i) = chains[i];
	scan->nr_chains = nr_chains;
	scan->live_blocks = gather->live_blocks;
	scan->live_bytes = gather->live_bytes;
	scan->swept_bytes = marks->swept_bytes;
	scan->used_bytes = marks->index.used_bytes;
	scan->why = LW_SCAN_WHY_NONE;
	scan->nr_scans++;
	scan->cpu_ns = lw_sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	scan->took_ns = lw_sys_clock_ns(CLOCK_MONOTONIC) - scan->began_mono_ns;
	lw_store_release(&scan->seq, (scan->seq | 1) + 1);
	lw_store_release(&scan->state, LW_SCAN_DONE);
	lw_store_release(&scan->outcome, LW_SCAN_OUTCOME_GOOD);
}

/* Address and birth: a block that was freed and came again at its old address is another. */
static uint64_t list_word(const struct lw_scan_entry *entry)
{
	struct lw_block block = { 0 };

	(void)lw_blocks_find(lw_scan_start(entry), &block);
	return lw_scan_start(entry) >> 3 << LW_BLOCK_BIRTH_BITS | block.birth;
}

static void list_lost(const struct lw_scan_marks *marks, uint64_t *list)
{
	uint64_t nr = 0, max = LW_SCAN_LIST_BYTES / sizeof(*list) - 1;

	for (uint64_t at = marks->left_first; at < marks->left_end && nr < max; at++) {
		if (!(marks->index.entries[at].start & (LW_SCAN_REACHED | LW_SCAN_UNOWNED)))
			list[++nr] = list_word(&marks->index.entries[at]);
	}
	list[0] = nr;
}

/* What was reachable a moment ago, or not yet there, is not accused, nor what only it points to. */
static void spare_unlisted(struct lw_scan_marks *marks, const uint64_t *list)
{
	uint64_t nr = list[0], next = 1;

	for (uint32_t at = marks->left_first; at < marks->left_end; at++) {
		const struct lw_scan_entry *entry = &marks->index.entries[at];
		uint64_t word;

		if (entry->start & (LW_SCAN_REACHED | LW_SCAN_UNOWNED))
			continue;
		word = list_word(entry);
		while (next <= nr && list[next] < word)
			next++;
		if (next > nr || list[next] != word)
			lw_scan_mark_entry(marks, at);
	}
	lw_scan_mark_rest(marks);
}

static void find_out(struct gather *gather, const struct lw_scan_plan *plan)
{
	struct lw_scan_marks *marks = &gather->marks;
	struct lw_scan_examples examples;
	struct lw_scan_site *sites;
	uint64_t now_ms;
	bool has_holders;

	if (!lw_maps_read(&marks->maps))
		fail(LW_SCAN_REFUSED, LW_SCAN_WHY_PROC);
	if (!is_shared)
		(void)lw_syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)lw_cfi_function((uintptr_t)_IO_file_doallocate, &gather->buffers_from, &gather->buffers_to);
	gather->nr_sites = lw_load_acquire(&lw_own.nr_sites);
	gather->site_kinds = lw_scan_room(gather->nr_sites + 1);
	sites = lw_scan_room((uint64_t)(gather->nr_sites + 1) * sizeof(*sites));
	marks->lost_sites = lw_scan_room((uint64_t)(gather->nr_sites + 1) * sizeof(*marks->lost_sites));
	now_ms = (lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE) - lw_hot.start_ns) / 1000000;
	gather->half_ms = now_ms / 2;
	has_holders = !(plan->flags & LW_SCAN_AT_EXIT) || now_ms > SOON_MS;
	if (has_holders)
		gather->tallies = lw_scan_room((uint64_t)(gather->nr_sites + 1) * sizeof(*gather->tallies));
	if (!gather->site_kinds || !sites || !marks->lost_sites || (has_holders && !gather->tallies))
		fail(LW_SCAN_FAILED, LW_SCAN_WHY_MEMORY);
	if (plan->list)
		gather->roots.list = (struct lw_scan_cut){ (uintptr_t)plan->list, (uintptr_t)plan->list + LW_SCAN_LIST_BYTES };
	if (plan->vectors)
		gather->roots.vectors = (struct lw_scan_cut){ (uintptr_t)plan->vectors,
			(uintptr_t)plan->vectors + LW_SCAN_MAX_THREADS * (uint64_t)LW_SCAN_VECTOR_BYTES };
	know_allocator(&gather->roots); /* first: kinds of sites depend on it */
	lw_blocks_visit_words(&visit_room, add_block, gather);
	gather->roots.threads = (struct lw_scan_threads){ plan->threads, plan->nr_threads, plan->descriptor,
		plan->tid, plan->pid, plan->main_descriptor, plan->locals_at, plan->locals_bytes };
	if (!lw_scan_index_sort(&marks->index) || !lw_scan_roots_find(&gather->roots, marks) ||
			!lw_scan_index_finish(&marks->index) || !lw_scan_marks_init(marks))
		fail(LW_SCAN_FAILED, LW_SCAN_WHY_MEMORY);
	lw_scan_links_find(marks);
	lw_scan_roots_mark(&gather->roots, marks);
	mark_lasting(gather);
	if (plan->step == LW_SCAN_STEP_FIRST) {
		list_lost(marks, plan->list);
		lw_store_release(&lw_box->scan.outcome, LW_SCAN_OUTCOME_GOOD);
		return;
	}
	if (plan->step == LW_SCAN_STEP_SECOND)
		spare_unlisted(marks, plan->list);
	if (!gather->roots.nr_unknown_stacks && plan->flags & LW_SCAN_APPROXIMATE)
		gather->roots.nr_unknown_stacks = 1; /* a thread that is none of libc's */
	if (gather->roots.nr_unknown_stacks && !lw_scan_spare_few(marks,
			(uint64_t)gather->roots.nr_unknown_stacks * LW_SCAN_REGISTERS, gather->nr_sites))
		fail(LW_SCAN_FAILED, LW_SCAN_WHY_MEMORY);
	lw_scan_judge(marks, sites, gather->nr_sites);
	examples = (struct lw_scan_examples){ &gather->roots, marks, gather->tallies, sites, gather->nr_sites,
		(uint32_t)now_ms, has_holders };
	nr_chains = lw_scan_chains_find(&examples, chains);
	write_results(gather, sites, plan);
}

/* struct sigaction of the kernel */
struct action {
	void (*handler)(int);
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

static __attribute__((noreturn)) void crash(int signal)
{
	(void)signal;
	for (;;)
		(void)lw_syscall(SYS_exit_group, 1);
}

/* A scanner that crashes must not be dumped with the memory it shares: there are kernels that end all who share it. */
static void catch_crashes(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
	struct action action = { .handler = crash, .flags = SA_RESTORER | SA_NODEFER };
	uint64_t mask = 0;

	for (size_t i = 0; i < LW_ARRAY_LENGTH(signals); i++) {
		(void)lw_syscall(SYS_rt_sigaction, signals[i], &action, 0, sizeof(mask));
		mask |= UINT64_C(1) << (signals[i] - 1);
	}
	(void)lw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, sizeof(mask));
}

void lw_scan_child(const struct lw_scan_plan *plan)
{
	static struct gather gather;

	gather = (struct gather){ 0 };
	is_shared = plan->is_shared;
	if (!(plan->flags & LW_SCAN_AT_EXIT)) /* first: threads that stood still for us want the processor now */
		(void)lw_syscall(SYS_setpriority, PRIO_PROCESS, 0, NICENESS);
	if (is_shared)
		catch_crashes();
	(void)lw_syscall(SYS_close_range, 0, ~0u, 0);
	(void)lw_syscall(SYS_prctl, PR_SET_PDEATHSIG, 9 /* SIGKILL */, 0, 0, 0);
	settle();
	if (!is_shared)
		lw_hot = plan->hot; /* the kernel has wiped ours */
	find_out(&gather, plan);
	leave();
}
