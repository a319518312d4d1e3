/* SPDX-License-Identifier: MIT */
/* mem.c - anonymous mappings for our own tables; see mem.h for the promises. */
#include "preload/base/mem.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "preload/base/sandbox.h"
#include "preload/base/sys.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { LARGE_BYTES = 1 << 20, MAX_LARGE = 1024, MAX_OWN = 4096, PAGES_AT_ONCE = 4096 };

static const size_t page_bytes = 4096;

uint32_t lw_sandbox_is_on;

/* Written by any thread, only summed up: relaxed. */
static uint64_t small_bytes;

/* Large mappings are never given back, so a slot is written once. */
static struct large {
	void *start; /* release: bytes is set */
	size_t bytes;
} large[MAX_LARGE] LW_ROOM;
static uint32_t nr_large;

/* All mappings, for a scan, which must not take our tables for the program's. */
static struct own {
	uintptr_t start; /* 0: free; release: bytes is set */
	size_t bytes;
} own[MAX_OWN] LW_ROOM;
static uint32_t nr_own; /* slots ever used; past MAX_OWN some were not noted */

static void note_own(uintptr_t start, size_t bytes)
{
	uint32_t slot = __atomic_fetch_add(&nr_own, 1, __ATOMIC_RELAXED);

	if (slot >= MAX_OWN)
		return;
	own[slot].bytes = bytes;
	lw_store_release(&own[slot].start, start);
}

static void forget_own(uintptr_t start)
{
	for (uint32_t slot = 0; slot < lw_load(&nr_own) && slot < MAX_OWN; slot++) {
		if (lw_load(&own[slot].start) == start)
			lw_store(&own[slot].start, 0);
	}
}

bool lw_mem_visit(lw_mem_visit_fn *visit, void *context)
{
	uint32_t nr = lw_load(&nr_own);

	for (uint32_t slot = 0; slot < nr && slot < MAX_OWN; slot++) {
		uintptr_t start = lw_load_acquire(&own[slot].start);

		if (start)
			visit(context, start, start + own[slot].bytes);
	}
	return nr <= MAX_OWN;
}

static void note(void *start, size_t bytes)
{
	uint32_t slot;

	if (bytes < LARGE_BYTES) {
		lw_add(&small_bytes, bytes);
		return;
	}
	(void)lw_syscall(SYS_madvise, start, bytes, MADV_NOHUGEPAGE);
	slot = __atomic_fetch_add(&nr_large, 1, __ATOMIC_RELAXED);
	if (slot >= MAX_LARGE)
		return;
	large[slot].bytes = bytes;
	lw_store_release(&large[slot].start, start);
}

/* Shown in /proc/PID/maps; where the kernel cannot, it is not asked again. */
static void name_mapping(void *start, size_t bytes, const char *name)
{
	static uint32_t is_refused;

	if (!lw_load(&is_refused) &&
			lw_syscall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, start, bytes, name) < 0)
		lw_store(&is_refused, 1);
}

void *lw_mem_map(size_t bytes, const char *name)
{
	size_t whole = LW_ALIGN_UP(bytes, page_bytes);
	long at;

	if (lw_sandboxed())
		return NULL;
	at = lw_syscall(SYS_mmap, 0, whole, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (lw_sys_failed(at))
		return NULL;
	(void)lw_syscall(SYS_madvise, at, whole, MADV_DONTDUMP);
	name_mapping((void *)at, whole, name);
	note((void *)at, whole);
	note_own((uintptr_t)at, whole);
	return (void *)at;
}

void lw_mem_unmap(void *start, size_t bytes)
{
	size_t whole = LW_ALIGN_UP(bytes, page_bytes);

	if (!start)
		return;
	forget_own((uintptr_t)start);
	(void)lw_syscall(SYS_munmap, start, whole);
	for (uint32_t slot = 0; slot < lw_load(&nr_large) && slot < MAX_LARGE; slot++) {
		if (lw_load(&large[slot].start) == start)
			lw_store(&large[slot].start, NULL);
	}
	if (whole < LARGE_BYTES)
		lw_add(&small_bytes, -(uint64_t)whole);
}

static uint64_t resident_pages(const void *start, size_t bytes)
{
	uint8_t resident[PAGES_AT_ONCE];
	size_t nr_pages = bytes / page_bytes;
	uint64_t nr = 0;

	for (size_t page = 0; page < nr_pages; page += PAGES_AT_ONCE) {
		size_t some = nr_pages - page < PAGES_AT_ONCE ? nr_pages - page : PAGES_AT_ONCE;

		if (lw_syscall(SYS_mincore, (const char *)start + page * page_bytes, some * page_bytes,
				    resident))
			continue;
		for (size_t i = 0; i < some; i++)
			nr += resident[i] & 1;
	}
	return nr;
}

uint64_t lw_mem_used_bytes(void)
{
	uint64_t bytes = lw_load(&small_bytes);

	for (uint32_t slot = 0; slot < lw_load(&nr_large) && slot < MAX_LARGE; slot++) {
		const void *start = lw_load_acquire(&large[slot].start);

		if (start)
			bytes += resident_pages(start, large[slot].bytes) * page_bytes;
	}
	return bytes;
}
