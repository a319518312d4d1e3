/* SPDX-License-Identifier: MIT */
/*
 * threads.c - attaching threads to our tables and detaching them when they end; see threads.h.
 *
 * The end of a thread is learned from the destructor of one pthread key. Keys made early have small
 * numbers, and setting those allocates nothing. Other destructors may still free memory afterwards:
 * that is counted in row 0. Putting ours off to the last round would save them a lock, but a thread
 * whose first event comes in a destructor has too few rounds left, and would keep its row for ever.
 */
#include "preload/record/threads.h"

#include <pthread.h>
#include <sys/mman.h>

#include "preload/base/hot.h"
#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/record/count.h"
#include "preload/record/hint.h"
#include "preload/share/box.h"
#include "preload/unwind/memo.h"
#include "preload/unwind/trail.h"

enum {
	MAX_SAFE_KEY = 32, /* pthread_setspecific of larger keys allocates */
	MANY_SITES = 4096,
	MAX_MORE = 2,
	CHUNK_BYTES = LW_CHUNK_SITES * sizeof(struct lw_count),
};

/* What a thread owns outside the region: one mapping, reused by the next thread. */
struct room {
	struct room *next; /* in the list of spare ones */
	struct lw_scratch scratch;
	struct lw_hints hints;
	struct lw_trail trail;
	struct lw_memo_room memos;
	struct lw_memo_more_room *more; /* NULL none: for a thread that needs it */
};

static struct room *spare_rooms LW_GUARDED_BY(lw_sites_lock);
static uint32_t spare_chunk LW_GUARDED_BY(lw_sites_lock); /* list through the chunks' first word */
static uint32_t first_free_row LW_GUARDED_BY(lw_sites_lock) = 1;
static pthread_key_t end_key;
static bool has_end_key;

/* Any thread, in order with what is moved between: see lw_threads_folds_begun(). */
static uint32_t nr_folds_begun, nr_folds_ended;

/*
 * The directories that we go by: somebody else may write into those of the region, which are for readers and
 * say the same. Without memory for them the region's serve.
 */
static uint32_t *directories;
static size_t directory_slices;

static uint32_t *directory_for_readers(uint32_t row)
{
	return (uint32_t *)(lw_box_row(row) + 1);
}

static uint32_t *directory(uint32_t row)
{
	return directories ? directories + row * directory_slices : directory_for_readers(row);
}

static void make_directories(void)
{
	directory_slices = lw_own.max_sites / LW_CHUNK_SITES;
	directories = lw_mem_map(LW_MAX_ROWS * directory_slices * sizeof(*directories), "leakwatch rows");
}

static struct lw_count *chunk_at(uint32_t chunk)
{
	return (struct lw_count *)(lw_hot.chunks + (size_t)chunk * CHUNK_BYTES);
}

static uint32_t nr_slices(void)
{
	return (lw_load_acquire(&lw_own.nr_sites) + LW_CHUNK_SITES - 1) / LW_CHUNK_SITES;
}

/* The link of a spare chunk, in two counters that cancel out. */
static void link_chunk(uint32_t chunk, uint64_t next)
{
	lw_store(&chunk_at(chunk)->alloc_bytes, next);
	lw_store(&chunk_at(chunk)->freed_bytes, next);
}

static uint32_t take_chunk(void)
{
	uint32_t chunk;

	lw_lock_acquire(&lw_sites_lock);
	chunk = spare_chunk;
	if (chunk) {
		spare_chunk = (uint32_t)chunk_at(chunk)->alloc_bytes;
		if (spare_chunk >= lw_own.nr_chunks) /* not our number */
			spare_chunk = 0;
		link_chunk(chunk, 0);
	} else {
		chunk = lw_box_take_chunk();
	}
	lw_lock_release(&lw_sites_lock);
	return chunk;
}

/* Whoever sums up the rows just now may still read it: it is emptied word by word, at once. */
static void give_chunk(uint32_t chunk)
{
	struct lw_count *counts = chunk_at(chunk);

	lw_lock_acquire(&lw_sites_lock);
	for (uint32_t i = 0; i < LW_CHUNK_SITES; i++) {
		lw_store(&counts[i].alloc_bytes, 0);
		lw_store(&counts[i].alloc_blocks, 0);
		lw_store(&counts[i].freed_bytes, 0);
		lw_store(&counts[i].freed_blocks, 0);
	}
	link_chunk(chunk, spare_chunk);
	spare_chunk = chunk;
	lw_lock_release(&lw_sites_lock);
}

/* The counters of a site in row 0, made if need be by whoever comes first. */
static struct lw_count *shared_count(uint32_t site)
{
	uint32_t *slot = directory(0) + site / LW_CHUNK_SITES, chunk = lw_load_acquire(slot), none = 0;

	if (!chunk) {
		chunk = take_chunk();
		if (!chunk)
			return NULL;
		if (!__atomic_compare_exchange_n(slot, &none, chunk, false, __ATOMIC_RELEASE,
				__ATOMIC_ACQUIRE)) {
			give_chunk(chunk);
			chunk = none;
		}
		lw_store_release(directory_for_readers(0) + site / LW_CHUNK_SITES, chunk);
	}
	return chunk_at(chunk) + site % LW_CHUNK_SITES;
}

LW_COLD struct lw_count *lw_threads_add_chunk(struct lw_thread *thread, uint32_t site)
{
	struct lw_count *count;
	uint32_t chunk;

	if (!thread->row) {
		count = shared_count(site);
	} else {
		chunk = take_chunk();
		count = chunk ? chunk_at(chunk) + site % LW_CHUNK_SITES : NULL;
		if (chunk) {
			lw_store_release(&thread->dir[site / LW_CHUNK_SITES], chunk);
			lw_store_release(&directory_for_readers(thread->row)[site / LW_CHUNK_SITES], chunk);
		}
	}
	if (!count)
		lw_box_drop(LW_DROP_COUNTERS);
	return count;
}

static void add_to_shared(uint32_t site, const struct lw_count *from)
{
	struct lw_count *to;

	if (!from->alloc_blocks && !from->freed_blocks)
		return;
	to = shared_count(site);
	if (!to) {
		lw_box_drop(LW_DROP_COUNTERS);
		return;
	}
	lw_add(&to->alloc_bytes, from->alloc_bytes);
	lw_add(&to->alloc_blocks, from->alloc_blocks);
	lw_add(&to->freed_bytes, from->freed_bytes);
	lw_add(&to->freed_blocks, from->freed_blocks);
}

/*
 * Adds a row to row 0 and gives it back. A reader that sums meanwhile may see a slice in neither or
 * in both rows for a moment; a slice leaves the row before it is added, so a sum is never too high.
 */
static void fold_row(uint32_t row)
{
	uint32_t *dir = directory(row);

	__atomic_fetch_add(&nr_folds_begun, 1, __ATOMIC_SEQ_CST);
	for (uint32_t slice = 0; slice < nr_slices(); slice++) {
		uint32_t chunk = dir[slice];

		if (!chunk)
			continue;
		lw_store_release(&dir[slice], 0);
		lw_store_release(&directory_for_readers(row)[slice], 0);
		for (uint32_t i = 0; i < LW_CHUNK_SITES; i++)
			add_to_shared(slice * LW_CHUNK_SITES + i, chunk_at(chunk) + i);
		give_chunk(chunk);
	}
	__atomic_fetch_add(&nr_folds_ended, 1, __ATOMIC_SEQ_CST);
	lw_lock_acquire(&lw_sites_lock);
	lw_store(&lw_box_row(row)->state, LW_ROW_FREE);
	if (row < first_free_row)
		first_free_row = row;
	lw_lock_release(&lw_sites_lock);
}

static uint32_t take_row(void)
{
	uint32_t row;

	lw_lock_acquire(&lw_sites_lock);
	for (row = first_free_row; row < LW_MAX_ROWS; row++) {
		if (lw_box_row(row)->state == LW_ROW_FREE)
			break;
	}
	first_free_row = row < LW_MAX_ROWS ? row + 1 : row;
	if (row < LW_MAX_ROWS) {
		lw_box_row(row)->tid = (uint32_t)lw_sys_gettid();
		lw_store(&lw_box_row(row)->state, LW_ROW_USED);
		if (row >= lw_own.nr_rows)
			LW_BOX_PUBLISH(nr_rows, row + 1);
	}
	if (row > 1)
		__atomic_fetch_or(&lw_box->flags, LW_REGION_PEAK_SAMPLED, __ATOMIC_RELAXED);
	lw_lock_release(&lw_sites_lock);
	return row < LW_MAX_ROWS ? row : 0;
}

static struct room *take_room(void)
{
	struct room *room;

	lw_lock_acquire(&lw_sites_lock);
	room = spare_rooms;
	if (room)
		spare_rooms = room->next;
	lw_lock_release(&lw_sites_lock);
	return room ? room : lw_mem_map(sizeof(*room), "leakwatch thread");
}

static struct room *room_of(struct lw_thread *thread)
{
	return (struct room *)((char *)thread->scratch - offsetof(struct room, scratch));
}

static void use_room(struct lw_thread *thread, struct room *room)
{
	thread->scratch = &room->scratch;
	thread->memos = room->more ? lw_memos_init_more(room->more) : lw_memos_init(&room->memos);
	thread->trail = &room->trail;
	thread->hints = &room->hints;
	thread->sites = thread->next_site = thread->last_site = NULL;
	if (!lw_hot.sample_bytes) { /* else a site would wait for an allocation that is passed over */
		thread->sites = thread->next_site = room->hints.pending;
		thread->last_site = thread->sites + LW_MAX_PENDING;
	}
	thread->stack_lo = thread->stack_hi = 0;
	thread->own_lo = thread->own_hi = 0;
	thread->is_own_stack = 0;
}

/*
 * With tens of thousands of stacks a table of 256 holds too few of those that come again. Two threads have a larger
 * one, and who comes by their rooms later, so that the price in memory is bounded.
 */
LW_COLD void lw_threads_more_memos(struct lw_thread *thread)
{
	static uint32_t nr_more;
	struct room *room = room_of(thread);

	if (room->more || lw_load(&lw_own.nr_sites) < MANY_SITES || lw_load(&nr_more) >= MAX_MORE ||
			__atomic_fetch_add(&nr_more, 1, __ATOMIC_RELAXED) >= MAX_MORE)
		return;
	room->more = lw_mem_map(sizeof(*room->more), "leakwatch memos");
	if (room->more)
		thread->memos = lw_memos_init_more(room->more);
}

static void give_room(struct lw_thread *thread)
{
	lw_lock_acquire(&lw_sites_lock);
	room_of(thread)->next = spare_rooms;
	spare_rooms = room_of(thread);
	lw_lock_release(&lw_sites_lock);
	thread->memos = NULL;
	thread->trail = NULL;
	thread->scratch = NULL;
	thread->hints = NULL;
	thread->sites = thread->next_site = thread->last_site = NULL;
}

static void use_row(struct lw_thread *thread, uint32_t row)
{
	thread->row = row;
	thread->dir = directory(row);
}

/* Gives back what the thread owns but its room: it may go on in row 0, until the very end. */
static void end_thread(void *value)
{
	struct lw_thread *thread = &lw_self;

	(void)value;
	if (!lw_gate_is_open(thread->gate) || !lw_hot.active)
		return;
	thread->gate = LW_GATE_BUSY;
	lw_count_flush(thread);
	if (thread->row) {
		uint32_t row = thread->row;

		use_row(thread, 0);
		fold_row(row);
	}
	give_room(thread);
	thread->gate = LW_GATE_LATE;
}

uint32_t lw_threads_folds_begun(void)
{
	return __atomic_load_n(&nr_folds_begun, __ATOMIC_SEQ_CST);
}

uint32_t lw_threads_folds_ended(void)
{
	return __atomic_load_n(&nr_folds_ended, __ATOMIC_SEQ_CST);
}

bool lw_threads_borrow(struct lw_thread *thread)
{
	struct room *room = take_room();

	if (!room)
		return false;
	use_room(thread, room);
	use_row(thread, 0);
	return true;
}

void lw_threads_give_back(struct lw_thread *thread)
{
	lw_count_flush(thread);
	give_room(thread);
}

void lw_threads_make_key(void)
{
	if (has_end_key || pthread_key_create(&end_key, end_thread))
		return;
	has_end_key = end_key < MAX_SAFE_KEY;
	if (!has_end_key)
		(void)pthread_key_delete(end_key);
}

void lw_threads_init(void)
{
	make_directories();
	lw_threads_make_key();
}

bool lw_threads_attach(struct lw_thread *thread)
{
	struct room *room = take_room();

	if (!room) {
		thread->gate = LW_GATE_OFF;
		return false;
	}
	use_room(thread, room);
	use_row(thread, has_end_key ? take_row() : 0);
	thread->live_bytes = thread->live_max = 0;
	if (has_end_key && !thread->is_registered)
		thread->is_registered = !pthread_setspecific(end_key, (void *)1);
	return true;
}

void lw_threads_fork_child(struct lw_thread *thread)
{
	lw_lock_acquire(&lw_sites_lock);
	nr_folds_begun = nr_folds_ended = 0; /* nobody is there to end them */
	first_free_row = 1;
	spare_chunk = 0;
	lw_lock_release(&lw_sites_lock);
	if (directories) /* empty, as the region's are */
		(void)lw_syscall(SYS_madvise, directories, LW_MAX_ROWS * directory_slices * sizeof(*directories),
				MADV_DONTNEED);
	thread->live_bytes = thread->live_max = 0;
	if (thread->scratch)
		use_row(thread, has_end_key ? take_row() : 0);
}
