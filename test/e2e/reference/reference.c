/* SPDX-License-Identifier: MIT */
/*
 * reference.c - a second, slow tracker beside ours, in a library made of LeakWatch's own objects.
 *
 * The linker's --wrap puts these functions between the hooks and record/track.c. Under one lock, and in
 * plain tables, they note what each event should do: address -> (bytes, site), and the sums of each
 * site. The site of an allocation is asked of the block table once, right after it was recorded, and
 * is checked to name this very call; everything else is kept independently. When the process
 * ends, all sums are compared with those of the region, and the table of blocks with ours, exactly.
 *
 * A thread's event is noted a moment after it was made, so a child forked by another thread in that
 * moment has inherited a block that only one of the two tables knows. Such blocks, at most one for each
 * thread of the parent, are counted as torn; of its own blocks none may be.
 *
 * LW_REFERENCE names a file that exists; each process adds one line, and one for each difference.
 */
#include <stdio.h>
#include <string.h>

#include "preload/base/guard.h"
#include "preload/base/hot.h"
#include "preload/base/lock.h"
#include "preload/base/mem.h"
#include "preload/base/sys.h"
#include "preload/live/report.h"
#include "preload/record/families.h"
#include "preload/record/sites.h"
#include "preload/record/track.h"
#include "preload/share/emit.h"
#include "preload/share/process.h"

enum { ENTRY_BITS = 22, MAX_SITES = 1 << 18, MAX_TOLD = 30, MAX_TORN = 8 };

/* A block that should be live. */
struct entry {
	uintptr_t address; /* 0 empty */
	uint64_t bytes;
	uint32_t site;
	uint32_t nr_forks; /* at its birth */
};

extern __typeof__(lw_track_alloc) __real_lw_track_alloc, __wrap_lw_track_alloc;
extern __typeof__(lw_track_alloc_aligned) __real_lw_track_alloc_aligned, __wrap_lw_track_alloc_aligned;
extern __typeof__(lw_track_free_sized) __real_lw_track_free_sized, __wrap_lw_track_free_sized;
extern __typeof__(lw_track_free_aligned) __real_lw_track_free_aligned, __wrap_lw_track_free_aligned;
extern __typeof__(lw_track_free) __real_lw_track_free, __wrap_lw_track_free;
extern __typeof__(lw_track_detach) __real_lw_track_detach, __wrap_lw_track_detach;
extern __typeof__(lw_track_reattach) __real_lw_track_reattach, __wrap_lw_track_reattach;
extern __typeof__(lw_track_forget) __real_lw_track_forget, __wrap_lw_track_forget;
extern __typeof__(lw_track_undo) __real_lw_track_undo, __wrap_lw_track_undo;
extern __typeof__(lw_report_end) __real_lw_report_end, __wrap_lw_report_end;

static struct lw_lock lock = LW_LOCK_INIT;
static struct entry *entries;	/* open addressing, neighbours closed up on removal */
static struct lw_count *sums;	/* by site */
static uint64_t nr_events, nr_torn, nr_inherited, nr_differences;
static uint32_t nr_forks;
static int32_t pid;
static char told[MAX_TOLD][160];

/* What a thread has detached and not yet forgotten or put back. */
static LW_TLS struct entry detached;

#define differ(...)                                                                                \
	do {                                                                                       \
		if (nr_differences < MAX_TOLD)                                                     \
			(void)snprintf(told[nr_differences], sizeof(told[0]), __VA_ARGS__);        \
		nr_differences++;                                                                  \
	} while (0)

/* ---- address -> entry ---- */

static size_t place_of(uintptr_t address)
{
	return (size_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ENTRY_BITS));
}

static const size_t entry_mask = (1u << ENTRY_BITS) - 1;

static struct entry *find(uintptr_t address)
{
	size_t at = place_of(address);

	while (entries[at].address && entries[at].address != address)
		at = (at + 1) & entry_mask;
	return &entries[at];
}

static void put(const struct entry *entry)
{
	*find(entry->address) = *entry;
}

static void take(struct entry *at)
{
	size_t hole = (size_t)(at - entries), next = hole;

	for (;;) {
		next = (next + 1) & entry_mask;
		if (!entries[next].address)
			break;
		/* one whose own place is not between the hole and itself can fill the hole */
		if (((next - place_of(entries[next].address)) & entry_mask) >= ((next - hole) & entry_mask)) {
			entries[hole] = entries[next];
			hole = next;
		}
	}
	entries[hole].address = 0;
}

/* ---- events ---- */

/* Will the event about to be made be recorded? It will not inside our own code. */
static bool is_open(void)
{
	return lw_self.gate != LW_GATE_BUSY && lw_self.gate != LW_GATE_OFF;
}

/* After an event: tables there, and those of this process. Then the lock is held. */
static bool begin(bool was_open) LW_TRY_ACQUIRE(true, lock) LW_NO_LOCK_CHECK
{
	if (!was_open || !lw_track_is_on() || !lw_box || !lw_load(&lw_hot.active))
		return false;
	if (pid != lw_box->pid) { /* the first event of a process, or of a forked child with its one thread */
		lw_lock_reset(&lock);
		if (!entries) {
			entries = lw_mem_map(sizeof(*entries) << ENTRY_BITS, "reference");
			sums = lw_mem_map(sizeof(*sums) * MAX_SITES, "reference");
		}
		memset(sums, 0, sizeof(*sums) * (pid ? MAX_SITES : 0));
		nr_forks += pid != 0;
		pid = lw_box->pid;
		nr_inherited = nr_events = nr_differences = nr_torn = 0;
	}
	lw_lock_acquire(&lock);
	nr_events++;
	return true;
}

static bool is_inherited(const struct entry *entry)
{
	return entry->nr_forks != nr_forks;
}

static void count_free(const struct entry *entry)
{
	if (is_inherited(entry)) {
		nr_inherited++;
		return;
	}
	sums[entry->site].freed_bytes += entry->bytes;
	sums[entry->site].freed_blocks++;
}

static void check_site(const struct lw_block *block, enum lw_kind kind, const struct lw_call *call)
{
	const struct lw_site *site = lw_box_site(block->site);

	if (block->site >= lw_box->nr_sites || site->kind != kind || lw_sites_pcs(block->site)[0] != call->pc)
		differ("site %u is not of this call, from %#lx", block->site, call->pc);
	if (block->is_inherited || (block->family != lw_family_of(kind) &&
			(block->family != LW_FAMILY_NEW_ALIGNED || !site->align_log2)))
		differ("block of kind %u has family %u", kind, block->family);
}

static void after_alloc(bool was_open, const void *ptr, size_t bytes, enum lw_kind kind, const struct lw_call *call)
		LW_NO_LOCK_CHECK
{
	struct entry entry = { .address = (uintptr_t)ptr, .bytes = bytes };
	struct lw_block block;

	if (!begin(was_open))
		return;
	if (find(entry.address)->address) { /* its release was made inside our code, and not seen */
		count_free(find(entry.address));
		take(find(entry.address));
	}
	if (!lw_blocks_find(entry.address, &block) || block.bytes != bytes) {
		differ("%p of %zu bytes is not in the table", ptr, bytes);
	} else {
		if (block.site)
			check_site(&block, kind, call);
		entry.site = block.site;
		entry.nr_forks = nr_forks;
		put(&entry);
		sums[entry.site].alloc_bytes += bytes;
		sums[entry.site].alloc_blocks++;
	}
	lw_lock_release(&lock);
}

void __wrap_lw_track_alloc(struct lw_hidden hidden, size_t bytes, enum lw_kind kind, const struct lw_call *call)
{
	bool was_open = is_open();

	__real_lw_track_alloc(hidden, bytes, kind, call);
	after_alloc(was_open, (const void *)lw_reveal(hidden), bytes, kind, call);
}

void __wrap_lw_track_alloc_aligned(struct lw_hidden hidden, size_t bytes, size_t align, enum lw_kind kind,
		const struct lw_call *call)
{
	bool was_open = is_open();

	__real_lw_track_alloc_aligned(hidden, bytes, align, kind, call);
	after_alloc(was_open, (const void *)lw_reveal(hidden), bytes, kind, call);
}

/* The address is still ours: the real release comes after this. */
static void after_free(bool was_open, const void *ptr) LW_NO_LOCK_CHECK
{
	struct entry *entry;

	if (!begin(was_open))
		return;
	entry = find((uintptr_t)ptr);
	if (entry->address) {
		count_free(entry);
		take(entry);
	}
	lw_lock_release(&lock);
}

void __wrap_lw_track_free(const void *ptr, enum lw_kind release, const struct lw_call *call)
{
	bool was_open = is_open();

	__real_lw_track_free(ptr, release, call);
	after_free(was_open, ptr);
}

void __wrap_lw_track_free_sized(const void *ptr, enum lw_kind release, size_t bytes, const struct lw_call *call)
{
	bool was_open = is_open();

	__real_lw_track_free_sized(ptr, release, bytes, call);
	after_free(was_open, ptr);
}

void __wrap_lw_track_free_aligned(const void *ptr, enum lw_kind release, size_t align, const size_t *bytes,
		const struct lw_call *call)
{
	bool was_open = is_open();

	__real_lw_track_free_aligned(ptr, release, align, bytes, call);
	after_free(was_open, ptr);
}

bool __wrap_lw_track_detach(struct lw_hidden hidden, const struct lw_call *call, struct lw_block *block)
{
	bool was_open = is_open(), is_tracked = __real_lw_track_detach(hidden, call, block);
	struct entry *entry;

	detached.address = 0;
	if (!begin(was_open))
		return is_tracked;
	entry = find(lw_reveal(hidden));
	if ((entry->address != 0) != is_tracked && (is_tracked ? block->is_inherited : is_inherited(entry)))
		nr_torn++;
	else if ((entry->address != 0) != is_tracked)
		differ("%p is %s our table and %s theirs", (void *)lw_reveal(hidden), is_tracked ? "in" : "not in",
				entry->address ? "in" : "not in");
	if (entry->address) {
		if (is_tracked && (block->bytes != entry->bytes || block->site != entry->site ||
						block->is_inherited != is_inherited(entry)))
			differ("%p has %lu bytes of site %u, not %lu of %u", (void *)lw_reveal(hidden), block->bytes, block->site,
					entry->bytes, entry->site);
		detached = *entry;
		take(entry);
	}
	lw_lock_release(&lock);
	return is_tracked;
}

void __wrap_lw_track_reattach(struct lw_hidden hidden, const struct lw_block *block)
{
	bool was_open = is_open();

	__real_lw_track_reattach(hidden, block);
	if (!begin(was_open))
		return;
	if (detached.address == lw_reveal(hidden))
		put(&detached);
	lw_lock_release(&lock);
}

void __wrap_lw_track_forget(struct lw_hidden hidden, const struct lw_block *block)
{
	bool was_open = is_open();

	__real_lw_track_forget(hidden, block);
	if (!begin(was_open))
		return;
	if (detached.address)
		count_free(&detached);
	lw_lock_release(&lock);
}

void __wrap_lw_track_undo(struct lw_hidden hidden)
{
	bool was_open = is_open();
	struct entry *entry;

	__real_lw_track_undo(hidden);
	if (!begin(was_open))
		return;
	entry = find(lw_reveal(hidden));
	if (entry->address) {
		if (!is_inherited(entry)) {
			sums[entry->site].alloc_bytes -= entry->bytes;
			sums[entry->site].alloc_blocks--;
		}
		take(entry);
	}
	lw_lock_release(&lock);
}

/* ---- the comparison ---- */

static void compare_block(void *context, uintptr_t address, const struct lw_block *block)
{
	const struct entry *entry = find(address);
	uint64_t *nr_seen = context;

	++*nr_seen;
	if (!entry->address && block->is_inherited)
		nr_torn++;
	else if (!entry->address)
		differ("%#lx, %lu bytes of site %u: in the table alone", address, block->bytes, block->site);
	else if (entry->bytes != block->bytes || entry->site != block->site ||
			block->is_inherited != is_inherited(entry))
		differ("%#lx: %lu bytes of site %u, should be %lu of %u", address, block->bytes, block->site,
				entry->bytes, entry->site);
}

static void compare_entry(const struct entry *entry)
{
	struct lw_block block;

	if (lw_blocks_find(entry->address, &block))
		return; /* compared by compare_block() */
	if (is_inherited(entry))
		nr_torn++;
	else
		differ("%#lx, %lu bytes of site %u: not in the table", entry->address, entry->bytes, entry->site);
}

static void compare_site(uint32_t site)
{
	struct lw_count ours = lw_emit_site_count(lw_box, lw_box->total_bytes, site);
	const struct lw_count *theirs = &sums[site];

	if (memcmp(&ours, theirs, sizeof(ours)))
		differ("site %u: +%lu/%lu -%lu/%lu, should be +%lu/%lu -%lu/%lu", site, ours.alloc_bytes,
				ours.alloc_blocks, ours.freed_bytes, ours.freed_blocks, theirs->alloc_bytes,
				theirs->alloc_blocks, theirs->freed_bytes, theirs->freed_blocks);
}

static void write_out(const char *file, uint64_t nr_blocks)
{
	char line[512];
	int fd = lw_sys_open(file, O_WRONLY | O_APPEND), length;

	if (fd < 0)
		return;
	length = snprintf(line, sizeof(line),
			"%d events %lu sites %u blocks %lu inherited %lu torn %lu dropped %lu differences %lu %s\n", pid,
			nr_events, lw_box->nr_sites, nr_blocks, nr_inherited, nr_torn,
			lw_box->dropped[LW_DROP_STALE] + lw_box->dropped[LW_DROP_REENTRANT], nr_differences,
			lw_box->exe);
	(void)lw_sys_write(fd, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
	for (uint64_t i = 0; i < nr_differences && i < MAX_TOLD; i++) {
		length = snprintf(line, sizeof(line), "# %s\n", told[i]);
		(void)lw_sys_write(fd, line, (size_t)length);
	}
	lw_sys_close(fd);
}

static void compare(const char *file)
{
	uint64_t nr_blocks = 0;

	lw_lock_acquire(&lock);
	for (uint32_t site = 0; site < lw_box->nr_sites && site < MAX_SITES; site++)
		compare_site(site);
	lw_blocks_visit(compare_block, &nr_blocks);
	for (size_t i = 0; i <= entry_mask; i++) {
		if (entries[i].address)
			compare_entry(&entries[i]);
	}
	/* one that was torn, and is gone since, shows here alone */
	if (lw_box->inherited_blocks != nr_inherited)
		nr_torn += lw_box->inherited_blocks > nr_inherited ? lw_box->inherited_blocks - nr_inherited
								   : nr_inherited - lw_box->inherited_blocks;
	if (nr_torn > (nr_forks ? MAX_TORN : 0))
		differ("%lu inherited blocks are torn", nr_torn);
	lw_lock_release(&lock);
	write_out(file, nr_blocks);
}

int __wrap_lw_report_end(enum lw_end how, int status)
{
	const char *file = lw_process_env("LW_REFERENCE");

	if (file && lw_box && lw_track_is_on() && lw_load(&lw_hot.active) && pid == lw_sys_getpid() &&
			lw_load(&lw_box->state) == LW_STATE_RUNNING && lw_box->pid == pid)
		compare(file);
	return __real_lw_report_end(how, status);
}
