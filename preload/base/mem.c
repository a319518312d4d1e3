/* SPDX-License-Identifier: MIT */
/* mem.c - anonymous mappings for our own tables; see mem.h for the promises. */
#include "preload/base/mem.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "preload/base/sys.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static const size_t page_bytes = 4096;

/* Written by any thread, only summed up: relaxed. */
static uint64_t mapped_bytes;

void *lw_mem_map(size_t bytes, const char *name)
{
	size_t whole = LW_ALIGN_UP(bytes, page_bytes);
	long at = lw_syscall(SYS_mmap, 0, whole, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (lw_sys_failed(at))
		return NULL;
	(void)lw_syscall(SYS_madvise, at, whole, MADV_DONTDUMP);
	if (whole >= (2u << 20))
		(void)lw_syscall(SYS_madvise, at, whole, MADV_NOHUGEPAGE);
	(void)lw_syscall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, whole, name);
	lw_add(&mapped_bytes, whole);
	return (void *)at;
}

void lw_mem_unmap(void *start, size_t bytes)
{
	size_t whole = LW_ALIGN_UP(bytes, page_bytes);

	if (!start)
		return;
	(void)lw_syscall(SYS_munmap, start, whole);
	lw_add(&mapped_bytes, -(uint64_t)whole);
}

uint64_t lw_mem_mapped_bytes(void)
{
	return lw_load(&mapped_bytes);
}
