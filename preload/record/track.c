/* SPDX-License-Identifier: MIT */
/* track.c - the allocation events; see track.h. */
#include "preload/record/track.h"

#include <errno.h>
#include <string.h>

#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/record/capture.h"
#include "preload/record/count.h"
#include "preload/record/families.h"
#include "preload/record/hint.h"
#include "preload/record/history.h"
#include "preload/record/sites.h"
#include "preload/record/threads.h"
#include "preload/record/wrong.h"
#include "preload/share/box.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/stack.h"

union lw_hot_page lw_hot_page LW_ROOM __attribute__((aligned(4096)));

enum { SANDBOX_HEAP_BYTES = 256 << 20, NS_PER_MS = 1000000, GENERATIONS_PER_FORK = 1 << 24 };

/* The hot page as it was when we started: what a forked child, whose page is wiped, begins with. */
static struct lw_hot_values hot_at_start;
static uint32_t nr_forks;

enum mode { MODE_BEFORE, MODE_ON, MODE_OFF };
static uint32_t mode = MODE_BEFORE;

/* ---- entering and leaving ---- */

/* A forked child at its first event: one thread, a wiped hot page, the parent's region mapped. */
static LW_COLD bool start_child(struct lw_thread *thread)
{
	uint32_t gate = thread->gate;

	thread->gate = LW_GATE_BUSY;
	lw_lock_reset(&lw_sites_lock);
	lw_hot = hot_at_start;
	lw_hot.active = 0;
	lw_hot.unloading = 0;
	lw_hot.generation = ++nr_forks * GENERATIONS_PER_FORK;
	if (!lw_box || !lw_box_renew()) {
		lw_box = NULL;
		mode = MODE_OFF;
		thread->gate = LW_GATE_OFF;
		return false;
	}
	lw_hot.start_ns = lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE);
	lw_blocks_fork_child();
	lw_threads_fork_child(thread);
	lw_history_start();
	lw_store(&lw_box->state, LW_STATE_RUNNING);
	lw_store_release(&lw_hot.active, 1);
	lw_child_started();
	thread->gate = gate;
	return true;
}

/* The first event of a process, program or forked child. */
static bool start_process(struct lw_thread *thread)
{
	bool is_up;

	if (lw_load(&mode) == MODE_BEFORE) {
		thread->gate = LW_GATE_BUSY;
		is_up = lw_bring_up();
		thread->gate = LW_GATE_NEW;
		return is_up;
	}
	return lw_load(&lw_hot.active) || start_child(thread);
}

static LW_COLD bool enter_slowly(struct lw_thread *thread)
{
	int saved_errno = errno;
	bool is_in = false;
	uint64_t mask;

	if (thread->gate == LW_GATE_BUSY || thread->gate == LW_GATE_OFF || lw_load(&mode) == MODE_OFF)
		return false;
	if (lw_load(&mode) == MODE_BEFORE || !lw_load(&lw_hot.active)) {
		/* a handler that ended the process half way would leave a region nobody knows of */
		lw_sys_block_signals(&mask);
		is_in = start_process(thread);
		lw_sys_restore_signals(&mask);
		errno = saved_errno;
		if (!is_in)
			return false;
	}
	if (lw_sandboxed() && thread->gate != LW_GATE_OPEN) {
		thread->gate = LW_GATE_OFF; /* setting it up would take system calls */
		return false;
	}
	if (thread->gate == LW_GATE_LATE) {
		thread->gate = LW_GATE_BUSY;
		is_in = lw_threads_borrow(thread);
		thread->is_late = is_in;
		if (!is_in)
			thread->gate = LW_GATE_LATE;
	} else {
		bool is_known = thread->gate == LW_GATE_OPEN || thread->gate == LW_GATE_LOOK;

		thread->gate = LW_GATE_BUSY;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		is_in = (lw_load(&lw_hot.active) || start_child(thread)) && (is_known || lw_threads_attach(thread));
	}
	errno = saved_errno;
	return is_in;
}

/*
 * First the gate, then the look whether this process is set up: a handler that interrupts us between the two and
 * forks leaves a child that knows from the gate that it has to go on here (lw_track_forked_inside()).
 */
LW_INLINE bool close_gate(struct lw_thread *thread, uint32_t gate)
{
	thread->gate = LW_GATE_BUSY;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (LW_LIKELY(lw_load(&lw_hot.active)))
		return true;
	thread->gate = gate;
	return false;
}

/*
 * The way in and out that nearly all events take: nothing to set up; at most a macro's site to find,
 * whose hint it gives. *after is what the gate is to be when the event is over.
 */
LW_INLINE bool enter_quickly(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame,
		uint32_t *hint, uint32_t *after)
{
	uint32_t gate = thread->gate;

	*hint = 0;
	*after = LW_GATE_OPEN;
	if (LW_UNLIKELY(gate != LW_GATE_OPEN)) {
		if (gate != LW_GATE_LOOK || thread->nr_paused || !close_gate(thread, gate))
			return false;
		*hint = lw_hint_find(thread, kind, frame);
		*after = lw_hint_is_pending(thread) ? LW_GATE_LOOK : LW_GATE_OPEN;
		return true;
	}
	return close_gate(thread, gate);
}

LW_INLINE void leave_quickly(struct lw_thread *thread, uint32_t after)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->gate = after;
}

LW_INLINE bool enter(struct lw_thread *thread)
{
	if (LW_UNLIKELY(thread->gate != LW_GATE_OPEN || !close_gate(thread, LW_GATE_OPEN)))
		return enter_slowly(thread);
	return true;
}

static void leave(struct lw_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (LW_UNLIKELY(thread->is_late)) {
		lw_threads_give_back(thread);
		thread->is_late = 0;
		thread->gate = LW_GATE_LATE;
		return;
	}
	thread->gate = thread->nr_paused || lw_hint_is_pending(thread) ? LW_GATE_LOOK : LW_GATE_OPEN;
}

bool lw_track_enter(void)
{
	return enter(&lw_self);
}

void lw_track_leave(void)
{
	leave(&lw_self);
}

/* ---- events ---- */

LW_INLINE uint64_t now_ms(void)
{
	return (lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE) - lw_hot.start_ns) / NS_PER_MS;
}

static LW_COLD void look(uint64_t ms)
{
	lw_store(&lw_hot.next_look_ms, ms + LW_LOOK_MS);
	lw_now_and_then();
}

/* Since the clock is read here, this is where what is to be done now and then learns that it is time. */
LW_INLINE uint32_t birth_now(void)
{
	uint32_t birth, floor = lw_load(&lw_hot.birth_floor);
	uint64_t ms = now_ms();

	if (LW_UNLIKELY(ms >= lw_load(&lw_hot.next_sample_ms)))
		lw_history_step(ms);
	if (LW_UNLIKELY(ms >= lw_load(&lw_hot.next_look_ms)))
		look(ms);
	birth = lw_block_birth(ms);
	return birth > floor ? birth : floor;
}

/* A record was found where a new block is: its release was not seen (a handler inside our code). */
static LW_COLD void replace(struct lw_thread *thread, const struct lw_block *stale)
{
	lw_box_drop(LW_DROP_STALE);
	if (!stale->is_inherited)
		lw_count_free(thread, stale->site, stale->bytes);
}

/* False: not recorded. It must not be counted then, since its release will not be. */
LW_INLINE bool insert(struct lw_thread *thread, const void *ptr, const struct lw_block *block)
{
	struct lw_block stale;
	bool is_stale;

	if (LW_UNLIKELY(!lw_blocks_insert((uintptr_t)ptr, block, &is_stale, &stale))) {
		lw_box_drop(LW_DROP_BLOCKS);
		return false;
	}
	if (LW_UNLIKELY(is_stale))
		replace(thread, &stale);
	return true;
}

LW_INLINE void note_alloc(struct lw_thread *thread, const void *ptr, size_t bytes, uint32_t key,
		enum lw_family family, const struct lw_frame *frame)
{
	struct lw_block block;

	lw_block_prefetch((uintptr_t)ptr);
	lw_stack_refresh(thread);
	block.site = lw_memo_find(thread, frame, key);
	if (LW_UNLIKELY(!block.site))
		block.site = lw_capture(thread, frame, key, true);
	block.birth = birth_now();
	block.bytes = bytes;
	block.family = family;
	if (LW_LIKELY(insert(thread, ptr, &block)))
		lw_count_alloc(thread, block.site, bytes);
}

/* The same where the gate is closed, the thread new or late, or paused by the program. */
static LW_NOINLINE void alloc_slowly(const void *ptr, size_t bytes, uint32_t key, enum lw_family family,
		const struct lw_frame *frame)
{
	struct lw_thread *thread = &lw_self;
	uint32_t hint;

	if (!enter(thread)) {
		lw_blocks_forget((uintptr_t)ptr);
		if (lw_load(&mode) != MODE_OFF)
			lw_box_drop(LW_DROP_REENTRANT);
		return;
	}
	if (thread->nr_paused) {
		lw_blocks_forget((uintptr_t)ptr);
	} else {
		hint = lw_hint_find(thread, lw_key_kind(key), frame);
		note_alloc(thread, ptr, bytes, key | lw_site_key(LW_KIND_UNKNOWN, 0, hint), family, frame);
	}
	leave(thread);
}

void lw_track_alloc(const void *ptr, size_t bytes, enum lw_kind kind, const struct lw_frame *frame)
{
	struct lw_thread *thread = &lw_self;
	uint32_t hint, after;

	if (LW_UNLIKELY(!enter_quickly(thread, kind, frame, &hint, &after))) {
		alloc_slowly(ptr, bytes, lw_site_key(kind, 0, 0), lw_family_of(kind), frame);
		return;
	}
	note_alloc(thread, ptr, bytes, lw_site_key(kind, 0, hint), lw_family_of(kind), frame);
	leave_quickly(thread, after);
}

void lw_track_alloc_aligned(const void *ptr, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_frame *frame)
{
	uint32_t align_log2 = align ? (uint32_t)__builtin_ctzll(align) : 0;
	enum lw_family family = lw_family_of(kind);

	alloc_slowly(ptr, bytes, lw_site_key(kind, align_log2, 0),
			family == LW_FAMILY_MALLOC ? family : LW_FAMILY_NEW_ALIGNED, frame);
}

/* The record of a block, taken out and counted as freed unless it was a parent's. */
LW_INLINE bool remove_block(struct lw_thread *thread, const void *ptr, struct lw_block *block)
{
	if (LW_UNLIKELY(!lw_blocks_remove((uintptr_t)ptr, block)))
		return false;
	if (LW_UNLIKELY(block->is_inherited))
		lw_add(&lw_box->inherited_blocks, 1);
	else
		lw_count_free(thread, block->site, block->bytes);
	return true;
}

/* Is a block what a release that names an alignment takes: of this alignment, and of new or new[]? */
static bool is_as_told(const struct lw_block *block, const struct lw_release *release)
{
	const struct lw_site *site = lw_box_site(block->site);

	return !block->site || ((uint64_t)1 << site->align_log2 == release->align &&
			lw_family_of((enum lw_kind)site->kind) == lw_family_of(release->kind));
}

LW_INLINE void note_release(struct lw_thread *thread, const void *ptr, const struct lw_release *release,
		const struct lw_frame *frame, uint32_t hint)
{
	struct lw_block block;

	if (LW_UNLIKELY(!remove_block(thread, ptr, &block)))
		lw_wrong_address(thread, (uintptr_t)ptr, release, frame, hint);
	else if (LW_UNLIKELY(block.family != release->family ||
			(release->has_bytes && block.bytes != release->bytes) ||
			(release->has_align && !is_as_told(&block, release))))
		lw_wrong_release(thread, &block, release, frame, hint);
}

static LW_NOINLINE void release_slowly(const void *ptr, const struct lw_release *release,
		const struct lw_frame *frame)
{
	struct lw_thread *thread = &lw_self;

	if (!enter(thread))
		return; /* a record may stay: it is replaced, and counted, when the address comes again */
	note_release(thread, ptr, release, frame, lw_hint_find(thread, release->kind, frame));
	leave(thread);
}

/* What the cold side is told of a release; made there, so that the ordinary way need not. */
LW_INLINE struct lw_release describe(enum lw_kind kind, bool has_bytes, size_t bytes)
{
	return (struct lw_release){
		.kind = kind, .family = lw_family_of(kind), .has_bytes = has_bytes, .bytes = bytes
	};
}

static LW_COLD void closed(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_frame *frame)
{
	const struct lw_release release = describe(kind, has_bytes, bytes);

	release_slowly(ptr, &release, frame);
}

/* block NULL: there is none at this address. */
static LW_COLD void wrong(const void *ptr, const struct lw_block *block, enum lw_kind kind, bool has_bytes,
		size_t bytes, const struct lw_frame *frame, uint32_t hint)
{
	const struct lw_release release = describe(kind, has_bytes, bytes);

	if (block)
		lw_wrong_release(&lw_self, block, &release, frame, hint);
	else
		lw_wrong_address(&lw_self, (uintptr_t)ptr, &release, frame, hint);
}

LW_INLINE void release(const void *ptr, enum lw_kind kind, bool has_bytes, size_t bytes,
		const struct lw_frame *frame)
{
	struct lw_thread *thread = &lw_self;
	struct lw_block block;
	uint32_t hint, after;

	__builtin_prefetch((const char *)ptr - 16, 1); /* the allocator's own head of the block is next */
	if (LW_UNLIKELY(!enter_quickly(thread, kind, frame, &hint, &after))) {
		closed(ptr, kind, has_bytes, bytes, frame);
		return;
	}
	if (LW_UNLIKELY(!remove_block(thread, ptr, &block)))
		wrong(ptr, NULL, kind, has_bytes, bytes, frame, hint);
	else if (LW_UNLIKELY(block.family != lw_family_of(kind) || (has_bytes && block.bytes != bytes)))
		wrong(ptr, &block, kind, has_bytes, bytes, frame, hint);
	leave_quickly(thread, after);
}

void lw_track_free(const void *ptr, enum lw_kind kind, const struct lw_frame *frame)
{
	release(ptr, kind, false, 0, frame);
}

void lw_track_free_sized(const void *ptr, enum lw_kind kind, size_t bytes, const struct lw_frame *frame)
{
	release(ptr, kind, true, bytes, frame);
}

void lw_track_free_aligned(const void *ptr, enum lw_kind kind, size_t align, const size_t *bytes,
		const struct lw_frame *frame)
{
	struct lw_release what = describe(kind, bytes, bytes ? *bytes : 0);

	if (what.family != LW_FAMILY_MALLOC)
		what.family = LW_FAMILY_NEW_ALIGNED;
	what.has_align = true;
	what.align = align;
	release_slowly(ptr, &what, frame);
}

/* The hint of a realloc that releases a wrong block: its site is used up only by what it allocates. */
static uint32_t peek(struct lw_thread *thread, const struct lw_frame *frame)
{
	return lw_hint_is_pending(thread) ? lw_hint_search(thread, LW_KIND_REALLOC_FREE, frame, true) : 0;
}

bool lw_track_detach(const void *ptr, const struct lw_frame *frame, struct lw_block *block)
{
	static const struct lw_release resizing = { .kind = LW_KIND_REALLOC_FREE, .family = LW_FAMILY_MALLOC };
	struct lw_thread *thread = &lw_self;
	bool is_tracked;

	if (!enter(thread))
		return false;
	is_tracked = lw_blocks_remove((uintptr_t)ptr, block);
	if (LW_UNLIKELY(!is_tracked))
		lw_wrong_address(thread, (uintptr_t)ptr, &resizing, frame, peek(thread, frame));
	else if (LW_UNLIKELY(block->family != LW_FAMILY_MALLOC))
		lw_wrong_release(thread, block, &resizing, frame, peek(thread, frame));
	leave(thread);
	return is_tracked;
}

void lw_track_reattach(const void *ptr, const struct lw_block *block)
{
	struct lw_thread *thread = &lw_self;

	if (!enter(thread))
		return;
	if (insert(thread, ptr, block) && LW_UNLIKELY(block->is_inherited))
		lw_blocks_disown((uintptr_t)ptr);
	leave(thread);
}

void lw_track_forget(const struct lw_block *block)
{
	struct lw_thread *thread = &lw_self;

	if (!enter(thread))
		return;
	if (block->is_inherited)
		lw_add(&lw_box->inherited_blocks, 1);
	else
		lw_count_free(thread, block->site, block->bytes);
	leave(thread);
}

void lw_track_undo(const void *ptr)
{
	struct lw_thread *thread = &lw_self;
	struct lw_block block;

	if (!enter(thread))
		return;
	if (lw_blocks_remove((uintptr_t)ptr, &block) && !block.is_inherited)
		lw_count_alloc_undo(thread, block.site, block.bytes);
	leave(thread);
}

/* ---- start and end ---- */

void lw_track_start(void)
{
	lw_history_start();
	hot_at_start = lw_hot;
	lw_store(&lw_box->state, LW_STATE_RUNNING);
	lw_store_release(&lw_hot.active, 1);
	lw_store_release(&mode, MODE_ON);
}

void lw_track_stop(void)
{
	lw_store_release(&mode, MODE_OFF);
	lw_store_release(&lw_hot.active, 0);
}

void lw_track_forked_inside(void)
{
	if (lw_load(&mode) == MODE_ON && lw_self.gate == LW_GATE_BUSY && !lw_load(&lw_hot.active))
		(void)start_child(&lw_self);
}

void lw_track_prepare_sandbox(void)
{
	struct lw_thread *thread = &lw_self;
	uintptr_t heap;

	if (!enter(thread))
		return;
	heap = (uintptr_t)lw_syscall(SYS_brk, 0);
	for (uintptr_t at = heap; at < heap + SANDBOX_HEAP_BYTES; at += (uintptr_t)1 << LW_LEAF_BITS) {
		if (!lw_block_word(at))
			(void)lw_blocks_add_leaf(at);
	}
	leave(thread);
}

bool lw_track_is_on(void)
{
	return lw_load(&mode) == MODE_ON;
}

void lw_track_exit_begins(void)
{
	struct lw_thread *thread = &lw_self;

	/* a process without any event has nothing to note, and need not come up for it now */
	if (!lw_load(&lw_hot.active) || !enter(thread))
		return;
	if (lw_sandboxed() || lw_own.pid == lw_sys_getpid()) /* else a vfork child's */
		lw_history_note_exit(now_ms());
	leave(thread);
}

struct ages {
	uint64_t inherited;
};

static void note_age(void *context, uintptr_t address, const struct lw_block *block)
{
	struct ages *ages = context;
	struct lw_site *site;
	uint32_t born_ms = (uint32_t)lw_block_birth_ms(block->birth);

	(void)address;
	if (block->is_inherited) {
		ages->inherited++;
		return;
	}
	if (block->site >= lw_load(&lw_own.nr_sites))
		return;
	site = lw_box_site(block->site);
	if (born_ms < site->oldest_ms)
		lw_store(&site->oldest_ms, born_ms);
}

void lw_track_finish(void)
{
	struct lw_thread *thread = &lw_self;
	struct ages ages = { 0 };

	if (!enter(thread))
		return;
	lw_count_flush(thread);
	lw_blocks_visit(note_age, &ages);
	lw_add(&lw_box->inherited_blocks, ages.inherited);
	leave(thread);
}
