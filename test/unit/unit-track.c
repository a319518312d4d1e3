/* SPDX-License-Identifier: MIT */
/*
 * unit-track.c - what one event means, in the cases that programs rarely come to: a block whose release was
 * not seen, one that cannot be recorded, a reallocation that fails, and all of it in forked children.
 *
 * A child reports by its exit status, one bit for each thing that was not as it should be.
 */
#include "test/unit/tap.h"
#include "test/unit/tables.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/share/emit.h"

static const uintptr_t base = UINT64_C(0x30000000000);

__attribute__((noinline)) static void allocate(uintptr_t at, uint64_t bytes, enum lw_kind kind)
{
	LW_CALLER(call);
	lw_track_alloc(lw_hide((void *)at), bytes, kind, call);
	__asm__ volatile("");
}

__attribute__((noinline)) static void release(uintptr_t at, enum lw_kind kind)
{
	LW_CALLER(call);
	lw_track_free((void *)at, kind, call);
	__asm__ volatile("");
}

__attribute__((noinline)) static bool detach(uintptr_t at, struct lw_block *block)
{
	LW_CALLER(call);
	return lw_track_detach(lw_hide((void *)at), call, block);
}

static struct lw_count all_sites(void)
{
	struct lw_count sum = { 0 };

	for (uint32_t id = 0; id < lw_box->nr_sites; id++) {
		struct lw_count one = lw_emit_site_count(lw_box, lw_box->total_bytes, id);

		sum.alloc_bytes += one.alloc_bytes;
		sum.alloc_blocks += one.alloc_blocks;
		sum.freed_bytes += one.freed_bytes;
		sum.freed_blocks += one.freed_blocks;
	}
	return sum;
}

/* What happened between two calls: allocated and freed bytes and blocks must be these. */
static bool has_counted(uint64_t alloc_bytes, uint64_t alloc_blocks, uint64_t freed_bytes, uint64_t freed_blocks)
{
	static struct lw_count before;
	struct lw_count now = all_sites(), was = before;

	before = now;
	return now.alloc_bytes - was.alloc_bytes == alloc_bytes && now.alloc_blocks - was.alloc_blocks == alloc_blocks &&
	       now.freed_bytes - was.freed_bytes == freed_bytes && now.freed_blocks - was.freed_blocks == freed_blocks;
}

static bool has_dropped(enum lw_drop why, uint64_t nr)
{
	static uint64_t before[LW_NR_DROPS];
	uint64_t was = before[why];

	before[why] = lw_box->dropped[why];
	return before[why] - was == nr;
}

static void test_plain(void)
{
	struct lw_block block;

	allocate(base, 100, LW_KIND_MALLOC);
	ok(has_counted(100, 1, 0, 0), "an allocation is counted");
	ok(detach(base, &block) && block.bytes == 100 && has_counted(0, 0, 0, 0) && !detach(base, &block),
			"a block that is being reallocated is out of the table, and counted");
	lw_track_reattach(lw_hide((void *)base), &block);
	ok(has_counted(0, 0, 0, 0) && detach(base, &block), "one that was not reallocated is back");
	lw_track_forget(lw_hide((void *)base), &block);
	ok(has_counted(0, 0, 100, 1), "one that was is counted as freed");
	allocate(base, 40, LW_KIND_MALLOC);
	lw_track_undo(lw_hide((void *)base));
	ok(has_counted(0, 0, 0, 0) && !detach(base, &block), "an allocation that is taken back never was");
	release(base, LW_KIND_FREE);
	ok(has_counted(0, 0, 0, 0) && !lw_box->nr_events, "an unknown address is no event");
}

static void test_mismatch(void)
{
	allocate(base, 24, LW_KIND_NEW_ARRAY);
	release(base, LW_KIND_DELETE);
	is_u64(lw_box->nr_events, 1, "a release of another family is an event");
	ok(has_counted(24, 1, 24, 1), "and a release");
	is_u64(lw_box_site(lw_box_event(0)->free_site)->kind, LW_KIND_DELETE, "whose stack is kept");
	is_u64(lw_box_site(lw_box_event(0)->alloc_site)->kind, LW_KIND_NEW_ARRAY, "as that of the allocation");
}

static void test_stale(void)
{
	uintptr_t big = base + 0x100000, inside = big + (1u << lw_hot.granule_shift);
	struct lw_block block;

	allocate(base, 10, LW_KIND_MALLOC);
	allocate(base, 30, LW_KIND_MALLOC);
	ok(has_counted(40, 2, 10, 1) && has_dropped(LW_DROP_STALE, 1),
			"a block where one still is means that the old one was freed unseen");
	release(base, LW_KIND_FREE);
	ok(has_counted(0, 0, 30, 1), "the new one is what is there");
	/* the release of a big block is not seen, and its memory is given out in pieces */
	allocate(big, UINT64_C(5) << 30, LW_KIND_MALLOC);
	allocate(inside, 11, LW_KIND_MALLOC);
	allocate(big, 12, LW_KIND_MALLOC);
	ok(has_counted((UINT64_C(5) << 30) + 23, 3, UINT64_C(5) << 30, 1) && has_dropped(LW_DROP_STALE, 1),
			"a big block is known by its size when a piece of it comes first");
	release(inside, LW_KIND_FREE);
	release(big, LW_KIND_FREE);
	allocate(big, UINT64_C(6) << 30, LW_KIND_MALLOC);
	allocate(big, 13, LW_KIND_MALLOC);
	ok(has_counted((UINT64_C(6) << 30) + 13, 2, (UINT64_C(6) << 30) + 23, 3) && has_dropped(LW_DROP_STALE, 1),
			"and when its start does");
	allocate(inside, 14, LW_KIND_MALLOC);
	ok(has_dropped(LW_DROP_STALE, 0) && has_counted(14, 1, 0, 0), "of which nothing is left");
	release(inside, LW_KIND_FREE);
	release(big, LW_KIND_FREE);
	ok(has_counted(0, 0, 27, 2) && !detach(big, &block), "so that all balances");
}

static void test_refused(void)
{
	uintptr_t beyond = UINT64_C(1) << 48;
	struct lw_block block;

	allocate(beyond, 100, LW_KIND_MALLOC);
	ok(has_dropped(LW_DROP_BLOCKS, 1), "a block that cannot be recorded is told");
	ok(has_counted(0, 0, 0, 0), "and not counted, since its release will not be");
	release(beyond, LW_KIND_FREE);
	ok(has_counted(0, 0, 0, 0) && !detach(beyond, &block), "which it is not");
}

/* ---- forked children ---- */

static int status_of(pid_t pid)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* In a child: which of its expectations failed, as bits. */
static int act_as_child(const struct lw_region_header *parents, uint32_t nr_sites)
{
	struct lw_block block;
	int wrong = 0;

	allocate(base + 64, 7, LW_KIND_MALLOC);
	wrong |= (lw_box->pid != getpid() || lw_box != parents) << 0;
	wrong |= (lw_box->nr_sites < nr_sites) << 1;
	wrong |= (all_sites().alloc_bytes != 7 || all_sites().freed_blocks) << 2;
	/* a reallocation of an inherited block that fails leaves it inherited */
	wrong |= (!detach(base, &block) || !block.is_inherited) << 3;
	lw_track_reattach(lw_hide((void *)base), &block);
	release(base, LW_KIND_FREE);
	wrong |= (all_sites().freed_blocks != 0 || lw_box->inherited_blocks != 1) << 4;
	release(base + 64, LW_KIND_FREE);
	wrong |= (all_sites().freed_bytes != 7) << 5;
	/* what the child of the child inherits */
	allocate(base + 64, 8, LW_KIND_MALLOC);
	return wrong;
}

static void test_forked(void)
{
	const struct lw_region_header *parents = lw_box;
	uint32_t nr_sites = lw_box->nr_sites;
	pid_t pid;

	allocate(base, 1000, LW_KIND_MALLOC);
	pid = fork();
	if (!pid) {
		int wrong = act_as_child(parents, nr_sites);

		for (unsigned depth = 0; !wrong && depth < 6; depth++) {
			struct lw_block block;

			pid = fork();
			if (pid)
				_exit(status_of(pid));
			/* each generation detaches what the one before it allocated */
			wrong |= (!detach(base + 64, &block) || !block.is_inherited || block.bytes != 8) << 6;
			lw_track_reattach(lw_hide((void *)(base + 64)), &block);
			wrong |= (!detach(base + 64, &block) || !block.is_inherited) << 6;
			lw_track_forget(lw_hide((void *)(base + 64)), &block);
			wrong |= (all_sites().freed_blocks != 0) << 6;
			allocate(base + 64, 8, LW_KIND_MALLOC);
		}
		_exit(wrong);
	}
	is_u64(status_of(pid), 0, "a forked child, and its children's children, count their own");
	ok(has_counted(1000, 1, 0, 0), "nothing of it is in the parent's region");
	release(base, LW_KIND_FREE);
	ok(has_counted(0, 0, 1000, 1), "whose block is still its own");
}

static pthread_key_t late_key;
static int late_status;

/* A thread that has given back what it had, and forks. */
static void fork_late(void *value)
{
	pid_t pid;

	(void)value;
	allocate(base + 128, 5, LW_KIND_MALLOC);
	pid = fork();
	if (!pid) {
		allocate(base + 192, 6, LW_KIND_MALLOC);
		release(base + 192, LW_KIND_FREE);
		release(base + 128, LW_KIND_FREE);
		_exit(all_sites().alloc_bytes != 6 || all_sites().freed_bytes != 6 || lw_box->inherited_blocks != 1);
	}
	late_status = status_of(pid);
	release(base + 128, LW_KIND_FREE);
}

static void *run_late(void *unused)
{
	allocate(base + 256, 9, LW_KIND_MALLOC);
	release(base + 256, LW_KIND_FREE);
	(void)pthread_setspecific(late_key, (void *)1);
	return unused;
}

__attribute__((unused)) static void test_late_fork(void)
{
	pthread_t thread;

	(void)pthread_key_create(&late_key, fork_late);
	if (!pthread_create(&thread, NULL, run_late, NULL))
		(void)pthread_join(thread, NULL);
	is_u64(late_status, 0, "a child forked while a thread ends is tracked like any");
	ok(has_counted(14, 2, 14, 2), "and its parent's thread goes on");
}

static void test_peak(void)
{
	int64_t before;

	lw_track_finish();
	before = lw_box->peak_bytes;
	for (uintptr_t i = 0; i < 1000; i++)
		allocate(base + 0x200000 + i * 4096, 1000000000 + i, LW_KIND_MALLOC);
	for (uintptr_t i = 0; i < 1000; i++)
		release(base + 0x200000 + i * 4096, LW_KIND_FREE);
	lw_track_finish();
	ok(before < lw_box->peak_bytes, "the peak has risen");
	is_u64(lw_box->peak_bytes, UINT64_C(1000) * 1000000000 + 999 * 500, "to exactly what was live at most");
	is_u64(lw_box->live_bytes, 0, "and nothing is live");
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* ThreadSanitizer lets a child that calls _exit write what is left */
	tables_start();
	test_plain();
	test_mismatch();
	test_stale();
	test_refused();
	test_forked();
#ifdef __SANITIZE_THREAD__
	ok(true, "destructors of keys # SKIP ThreadSanitizer ends a thread before they run");
#else
	test_late_fork();
#endif
	test_peak();
	return done();
}
