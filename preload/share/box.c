/* SPDX-License-Identifier: MIT */
/*
 * box.c - creating the black box: a SysV segment under a key made from the pid, mode 0600.
 *
 * A segment under our key that is our own user's and whose process is gone, or is an image of this
 * very process from before an exec, is replaced. Any other is left alone, and the next key of the sequence taken;
 * readers tell the right one by its header. If no segment can be had the region is private: the
 * program is tracked, and reports, but nobody can look at it from outside.
 */
#include "preload/share/box.h"

#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>

#include "preload/base/hot.h"
#include "preload/base/log.h"
#include "preload/base/mem.h"
#include "preload/base/sandbox.h"
#include "preload/base/sys.h"
#include "preload/share/boxfile.h"
#include "preload/share/process.h"
#include "preload/share/queue.h"

struct lw_lock lw_sites_lock = LW_LOCK_INIT;
struct lw_region_header *lw_box;
struct lw_box_own lw_own;

enum { LEAST_READ_UNITS = 1024 }; /* 8 KiB: stacks and paths are shorter */
_Static_assert(LEAST_READ_UNITS * 8 > LW_MAX_FRAMES * 10, "a stack");
enum { LEAST_SITES = 1024, MAX_ATTACH_TRIES = 2 };

static const struct lw_options *options;

/* Has this very process made it: the image that an exec replaced by us? */
static bool is_from_before_exec(const struct lw_region_header *other, const struct lw_region_header *mine)
{
	uint64_t start_ticks;
	int32_t ppid;

	return other->pid == mine->pid && lw_region_proc_stat(0, &start_ticks, &ppid) &&
	       !lw_region_is_reused(other->start_ticks, start_ticks);
}

/*
 * May the segment be replaced: the leftover of our own image before an exec, or of a process that is gone
 * and has reported? One that has not is the cleaner's to report; we take the next key.
 */
static bool is_stale(int shmid, const struct lw_region_header *mine)
{
	const struct lw_region_header *other;
	struct shmid_ds segment;
	uint64_t bytes;
	const char *why;
	bool is_free;

	if (lw_syscall(SYS_shmctl, shmid, IPC_STAT, &segment) < 0 ||
			lw_region_attach_id(shmid, &other, &bytes, &why))
		return false;
	is_free = segment.shm_cpid == mine->pid && is_from_before_exec(other, mine);
	if (!segment.shm_nattch && lw_load_acquire(&other->state) == LW_STATE_REPORTED)
		is_free = true;
	lw_region_detach(other);
	return is_free;
}

/* A fresh segment under one of our keys, -errno if there is none to be had. */
static int make_segment(const struct lw_region_header *mine, uint64_t bytes)
{
	int error = -EEXIST;

	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		int32_t key = lw_region_key(mine->pid, attempt);
		int flags = IPC_CREAT | IPC_EXCL | SHM_NORESERVE | 0600;

		for (unsigned tries = 0; tries < MAX_ATTACH_TRIES; tries++) {
			int shmid = (int)lw_syscall(SYS_shmget, key, bytes, flags);

			if (shmid >= 0)
				return shmid;
			error = shmid;
			if (error != -EEXIST)
				return error;
			shmid = (int)lw_syscall(SYS_shmget, key, 0, 0);
			if (shmid < 0 || !is_stale(shmid, mine))
				break; /* somebody else's: next key */
			(void)lw_syscall(SYS_shmctl, shmid, IPC_RMID, 0);
		}
	}
	return error;
}

static struct lw_region_header *map_segment(int shmid, void *at)
{
	long where = lw_syscall(SYS_shmat, shmid, at, at ? SHM_REMAP : 0);

	return lw_sys_failed(where) ? NULL : (struct lw_region_header *)where;
}

/* The region mapped, at `at` if that is not NULL; *shmid -1 when it is private. */
static struct lw_region_header *map_region(
		const struct lw_region_header *mine, uint64_t bytes, int *shmid, int *refusal)
{
	struct lw_region_header *region;
	long at;

	*shmid = -1;
	if (options->black_box[0] && (mine->flags & LW_REGION_ROOT || lw_options_has_pid(options->black_box))) {
		region = lw_boxfile_map(options->black_box, mine, bytes, refusal);
		if (region)
			return region;
		lw_log("no black_box file %s (%s): shared memory is used", options->black_box, strerrordesc_np(-*refusal));
	}
	*shmid = make_segment(mine, bytes);
	*refusal = *shmid < 0 ? *shmid : 0;
	if (*shmid >= 0) {
		region = map_segment(*shmid, NULL);
		if (region)
			return region;
		(void)lw_syscall(SYS_shmctl, *shmid, IPC_RMID, 0);
		*shmid = -1;
		*refusal = -ENOMEM;
	}
	*shmid = -1;
	at = lw_syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return lw_sys_failed(at) ? NULL : (struct lw_region_header *)at;
}

/* Copies what was prepared beside the region, and fills what every new region starts with. */
static void fill(struct lw_region_header *region, const struct lw_region_header *mine, int shmid)
{
	/* not the texts at its end: they are written in place, as far as they go */
	memcpy(region, mine, offsetof(struct lw_region_header, exe));
	region->magic = LW_REGION_MAGIC;
	region->version = LW_REGION_VERSION;
	region->header_bytes = sizeof(*region);
	region->shmid = shmid;
	region->msqid = -1;
	region->state = LW_STATE_STARTING;
	if (shmid < 0)
		region->flags |= LW_REGION_PRIVATE;
	(void)lw_syscall(SYS_madvise, region, mine->total_bytes, MADV_DONTDUMP);
}

/* header: one that nobody else can write to. */
static void know_places(struct lw_region_header *region, const struct lw_region_header *header)
{
	char *base = (char *)region;

	lw_own.sites = (void *)(base + header->sites.off);
	lw_own.modules = (void *)(base + header->modules.off);
	lw_own.events = (void *)(base + header->events.off);
	lw_own.hints = (void *)(base + header->hints.off);
	lw_own.marks = (void *)(base + header->marks.off);
	lw_own.held = (void *)(base + header->held.off);
	lw_own.scans = (void *)(base + header->scans.off);
	lw_own.chains = (void *)(base + header->chains.off);
	lw_own.rows = base + header->rows.off;
	lw_own.history = base + header->history.off;
	lw_own.pool = base + header->pool.off;
	lw_own.row_stride = header->rows.stride;
	lw_own.max_sites = header->sites.max;
	lw_own.max_modules = header->modules.max;
	lw_own.max_events = header->events.max;
	lw_own.max_hints = header->hints.max;
	lw_own.max_marks = header->marks.max;
	lw_own.max_chunks = header->chunks.max;
	lw_own.max_pool = header->pool.max - LEAST_READ_UNITS;
	lw_own.total_bytes = header->total_bytes;
}

static void know_self(const struct lw_region_header *mine, int32_t shmid)
{
	lw_own.started_mono_ns = mine->started_mono_ns;
	lw_own.pid = mine->pid;
	lw_own.uid = mine->uid;
	lw_own.shmid = shmid;
	lw_own.msqid = -1;
}

static void start_counting(struct lw_region_header *region)
{
	lw_box = region;
	LW_BOX_PUBLISH(nr_sites, 1);  /* id 0: unknown */
	LW_BOX_PUBLISH(nr_rows, 1);   /* row 0: shared, always in use; its page comes with its first count */
	LW_BOX_PUBLISH(nr_chunks, 1);
	LW_BOX_PUBLISH(pool_used, 1); /* offset 0 means none */
	LW_BOX_PUBLISH(nr_hints, 1);
	LW_BOX_PUBLISH(nr_modules, 0);
	LW_BOX_PUBLISH(nr_events, 0);
	LW_BOX_PUBLISH(nr_marks, 0);
}

/* Of a limited address space the larger part is the program's. */
static bool is_room_for(uint64_t bytes)
{
	struct rlimit limit;

	return lw_syscall(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	       bytes <= limit.rlim_cur / 2;
}

bool lw_box_create(const struct lw_options *settings, uint64_t other_bytes, int *refusal)
{
	static struct lw_region_header mine LW_ROOM; /* too much for a small stack */
	struct lw_region_header *region = NULL;
	uint32_t max_sites = settings->max_sites;
	int shmid = -1;

	options = settings;
	lw_process_describe(&mine);
	mine.depth = options->depth;
	mine.flags |= lw_process_place(&mine);
	*refusal = 0;
	if (options->black_box[0] && max_sites > LW_BOXFILE_MAX_SITES)
		max_sites = LW_BOXFILE_MAX_SITES;
	for (; !region && max_sites >= LEAST_SITES; max_sites /= 8) {
		mine.total_bytes = lw_region_layout(&mine, max_sites);
		if (!is_room_for(mine.total_bytes + other_bytes))
			continue;
		region = map_region(&mine, mine.total_bytes, &shmid, refusal);
	}
	if (!region)
		return false;
	fill(region, &mine, shmid);
	lw_process_name(region);
	know_places(region, &mine);
	know_self(&mine, shmid);
	lw_own.exe_bytes = region->exe_bytes;
	lw_own.cmdline_bytes = region->cmdline_bytes;
	start_counting(region);
	return true;
}

bool lw_box_put_sign(void)
{
	static const uint64_t bytes = LW_ALIGN_UP(sizeof(struct lw_region_header), 4096u) + LW_REGION_TAIL_BYTES;
	static struct lw_region_header mine LW_ROOM;
	struct lw_region_header *sign;
	bool is_root;
	int shmid;

	if (lw_box && lw_own.shmid >= 0)
		(void)lw_syscall(SYS_shmctl, lw_own.shmid, IPC_RMID, 0);
	if (lw_box)
		(void)lw_syscall(lw_own.shmid >= 0 ? SYS_shmdt : SYS_munmap, lw_box, lw_own.total_bytes);
	lw_box = NULL;
	lw_process_describe(&mine);
	is_root = lw_process_place(&mine) & LW_REGION_ROOT;
	shmid = is_root ? make_segment(&mine, bytes) : -1;
	sign = shmid >= 0 ? map_segment(shmid, NULL) : NULL;
	if (!sign && shmid >= 0)
		(void)lw_syscall(SYS_shmctl, shmid, IPC_RMID, 0);
	if (!sign)
		return is_root;
	lw_box = sign;
	know_self(&mine, shmid);
	return true;
}

static void copy_entries(struct lw_region_header *to, const void *from, size_t nr_bytes)
{
	memcpy((char *)to + ((const char *)from - (const char *)lw_box), from, nr_bytes);
}

/*
 * What the child keeps of its parent's region: sites, modules, hints and the pool they point into, as many as
 * there were at the fork; the parent may have added others since.
 */
static void copy_records(struct lw_region_header *to)
{
	copy_entries(to, lw_own.modules, lw_own.nr_modules * sizeof(*lw_own.modules));
	copy_entries(to, lw_own.sites, lw_own.nr_sites * sizeof(*lw_own.sites));
	copy_entries(to, lw_own.hints, lw_own.nr_hints * sizeof(*lw_own.hints));
	copy_entries(to, lw_own.pool, (size_t)lw_own.pool_used * 8);
}

/* From the parent: servers write their titles over the arguments on the stack. */
static void copy_texts(struct lw_region_header *to, const struct lw_region_header *from)
{
	memcpy(to->exe, from->exe, to->exe_bytes = lw_own.exe_bytes);
	memcpy(to->cmdline, from->cmdline, to->cmdline_bytes = lw_own.cmdline_bytes);
	memcpy(to->options, from->options, to->options_bytes = lw_own.options_bytes);
	memcpy(to->suppressions, from->suppressions, to->suppressions_bytes = lw_own.suppressions_bytes);
}

/* What counts starts from nothing in the child, but for the records it has kept. */
static void count_on(struct lw_region_header *region)
{
	struct lw_box_own parents = lw_own;

	start_counting(region);
	LW_BOX_PUBLISH(nr_sites, parents.nr_sites);
	LW_BOX_PUBLISH(nr_modules, parents.nr_modules);
	LW_BOX_PUBLISH(nr_hints, parents.nr_hints);
	LW_BOX_PUBLISH(pool_used, parents.pool_used);
}

bool lw_box_renew(void)
{
	static struct lw_region_header mine LW_ROOM;
	struct lw_region_header *parent = lw_box, *region;
	uint64_t bytes = lw_own.total_bytes;
	int shmid, refusal;

	memset(&mine, 0, offsetof(struct lw_region_header, exe));
	(void)lw_region_layout(&mine, lw_own.max_sites);
	mine.depth = parent->depth;
	mine.granule_bytes = parent->granule_bytes;
	lw_process_describe(&mine);
	mine.flags |= (parent->flags & LW_REGION_WATCHED) | lw_process_under(parent->flags);
	region = map_region(&mine, bytes, &shmid, &refusal);
	if (!region) {
		lw_box = NULL;
		return false;
	}
	fill(region, &mine, shmid);
	copy_texts(region, parent);
	copy_records(region);
	lw_box = region;
	/* move it over the parent's, so that every pointer into the region goes on to hold */
	if (shmid >= 0) {
		lw_box = map_segment(shmid, parent);
		if (!lw_box)
			(void)lw_syscall(SYS_shmctl, shmid, IPC_RMID, 0);
		(void)lw_syscall(SYS_shmdt, region);
	} else {
		long at = lw_syscall(SYS_mremap, region, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, parent);

		lw_box = lw_sys_failed(at) ? NULL : (struct lw_region_header *)at;
	}
	if (!lw_box)
		return false;
	know_self(&mine, shmid);
	count_on(lw_box);
	return true;
}

void lw_box_set_reaper(bool is_one)
{
	if (lw_box && is_one)
		(void)__atomic_fetch_or(&lw_box->flags, (uint32_t)LW_REGION_REAPER, __ATOMIC_RELAXED);
	else if (lw_box && lw_own.pid != 1)
		(void)__atomic_fetch_and(&lw_box->flags, ~(uint32_t)LW_REGION_REAPER, __ATOMIC_RELAXED);
}

bool lw_box_is_shared(void)
{
	struct shmid_ds segment;

	if (!lw_box || lw_own.shmid < 0 || lw_syscall(SYS_shmctl, lw_own.shmid, IPC_STAT, &segment) < 0 ||
			segment.shm_cpid != lw_own.pid || segment.shm_segsz < lw_own.total_bytes)
		return false;
	for (unsigned attempt = 0; attempt < LW_REGION_KEYS; attempt++) {
		if (segment.shm_perm.__key == lw_region_key(lw_own.pid, attempt))
			return true;
	}
	return segment.shm_perm.mode & SHM_DEST; /* marked for removal: it has no key any more */
}

void lw_box_remove(void)
{
	/* in another IPC namespace than at the start the number may be a segment of the program's */
	if (lw_sandboxed() || !lw_box_is_shared() || lw_own.pid != lw_sys_getpid())
		return;
	lw_queue_remove(lw_own.msqid);
	(void)lw_syscall(SYS_shmctl, lw_own.shmid, IPC_RMID, 0);
}

void lw_box_set_queue(int32_t msqid)
{
	lw_store(&lw_own.msqid, msqid);
	lw_store(&lw_box->msqid, msqid);
}

int32_t lw_box_add_queue(void)
{
	int32_t msqid = lw_own.shmid < 0 ? -1 : lw_queue_create(lw_own.pid);

	lw_box_set_queue(msqid < 0 ? -1 : msqid);
	return lw_own.shmid < 0 || msqid >= 0 ? 0 : msqid;
}

uint32_t lw_box_take_locked(size_t nr_bytes)
{
	uint32_t units = (uint32_t)((nr_bytes + 7) / 8), at = lw_own.pool_used;

	if (units > lw_own.max_pool || at > lw_own.max_pool - units)
		return 0;
	LW_BOX_PUBLISH(pool_used, at + units);
	return at;
}

uint32_t lw_box_take_chunk(void)
{
	uint32_t index = lw_load(&lw_own.nr_chunks);

	do {
		if (index >= lw_own.max_chunks)
			return 0;
	} while (!__atomic_compare_exchange_n(&lw_own.nr_chunks, &index, index + 1, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED));
	lw_add(&lw_box->nr_chunks, 1);
	return index;
}

uint32_t lw_box_now_ms(void)
{
	return (uint32_t)((lw_sys_clock_ns(CLOCK_MONOTONIC_COARSE) - lw_hot.start_ns) / 1000000);
}

/* Pages of the tiles, if each has a site that ever held something. */
static uint64_t history_bytes(void)
{
	uint64_t nr_tiles = (lw_own.nr_sites + LW_CHUNK_SITES - 1) / LW_CHUNK_SITES, nr_kept = 0;

	for (uint32_t slot = 0; slot < LW_HISTORY_SAMPLES; slot++)
		nr_kept += lw_load(&lw_box->samples[slot].is_kept);
	return nr_tiles * LW_ALIGN_UP(nr_kept * LW_HISTORY_TILE_BYTES / LW_HISTORY_SAMPLES, 4096u) +
	       (lw_box->exit_began_ms ? (uint64_t)lw_own.nr_sites * sizeof(struct lw_held) : 0);
}

uint64_t lw_box_used_bytes(void)
{
	return sizeof(*lw_box) + history_bytes() + (uint64_t)lw_own.nr_modules * sizeof(struct lw_module) +
	       (uint64_t)lw_own.nr_sites * sizeof(struct lw_site) +
	       (uint64_t)lw_own.nr_chunks * LW_CHUNK_SITES * sizeof(struct lw_count) +
	       (uint64_t)lw_own.nr_rows * lw_own.row_stride + (uint64_t)lw_own.pool_used * 8;
}
