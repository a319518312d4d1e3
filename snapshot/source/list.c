/* SPDX-License-Identifier: MIT */
/*
 * list.c - the watched processes of this user, found by looking at all SysV segments.
 *
 * The kernel's table is walked by index with SHM_STAT, which needs no /proc and shows only segments
 * we may read; each that has the size, the owner and the header of a region is one. Regions of
 * processes that are gone are listed as such: their cleaner is still to come, or was killed.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>

#include "preload/base/base.h"

static uint64_t held_bytes(const struct lw_region_header *region, uint64_t bytes)
{
	uint32_t nr_sites = lw_load_acquire(&region->nr_sites);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr_sites && i < region->sites.max; i++) {
		struct lw_count count = lw_emit_site_count(region, bytes, i);
		int64_t live = (int64_t)(count.alloc_bytes - count.freed_bytes);

		sum += live > 0 ? (uint64_t)live : 0;
	}
	return sum;
}

static bool is_process_gone(const struct lw_region_header *region, int32_t pid)
{
	uint64_t start_ticks = 0;
	int32_t ppid;

	if (!lw_region_proc_stat(pid, &start_ticks, &ppid))
		return true;
	return lw_region_is_reused(region->start_ticks, start_ticks);
}

/* maker: its number as the kernel tells it to us, who may be in another pid namespace; 0 unknown. */
static bool show(int shmid, int32_t maker, source_process_fn *found, void *context)
{
	const struct lw_region_header *region;
	struct source_process process;
	uint64_t bytes, now_ns, ended_ns;
	struct timespec now;
	const char *why;
	char exe[LW_EXE_BYTES + 1] = "";

	if (lw_region_attach_id(shmid, &region, &bytes, &why))
		return false;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	ended_ns = lw_load(&region->ended_mono_ns);
	now_ns = ended_ns ? ended_ns : now_ns;
	for (size_t i = 0; i < LW_EXE_BYTES && region->exe[i]; i++)
		exe[i] = region->exe[i];
	process = (struct source_process){
		.pid = maker ? maker : region->pid,
		.is_gone = is_process_gone(region, maker ? maker : region->pid),
		.end_kind = lw_load(&region->end_kind),
		.uptime_ns =
			now_ns > region->started_mono_ns ? now_ns - region->started_mono_ns : 0,
		.live_bytes = held_bytes(region, bytes),
		.exe = exe,
	};
	lw_region_detach(region);
	found(context, &process);
	return true;
}

int source_list(source_process_fn *found, void *context)
{
	struct shm_info info;
	/* the kernel calls it shmctl(SHM_INFO), and fills a struct of its own */
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info), nr_found = 0;

	if (last < 0)
		return -errno;
	for (int i = 0; i <= last; i++) {
		struct shmid_ds stat;
		int shmid = shmctl(i, SHM_STAT, &stat);

		if (shmid >= 0 && show(shmid, stat.shm_cpid, found, context))
			nr_found++;
	}
	return nr_found;
}
