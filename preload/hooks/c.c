/* SPDX-License-Identifier: MIT */
/*
 * c.c - the C allocation functions, interposed. Each does the real call and tells track; no more.
 *
 * While sampling is on, what is passed over goes straight on to the real function.
 * LW_CALLER makes each have a frame pointer: what it points to is the caller. An allocation is
 * recorded after it succeeded, a block forgotten before it is released. Aliases of one function are
 * separate functions on purpose: a program may compare their addresses.
 */
#include <errno.h>
#include <stdlib.h>

#include "preload/base/early.h"
#include "preload/base/real.h"
#include "preload/base/sys_x86_64.h"
#include "preload/live/report.h"
#include "preload/record/sample.h"
#include "preload/record/sites.h"
#include "preload/record/track.h"
#include "preload/unwind/modules.h"

void *reallocarray(void *ptr, size_t nr, size_t bytes);
void *memalign(size_t align, size_t bytes);
void *valloc(size_t bytes);
void *pvalloc(size_t bytes);
size_t malloc_usable_size(void *ptr);
void cfree(void *ptr);
void free_sized(void *ptr, size_t bytes);
void free_aligned_sized(void *ptr, size_t align, size_t bytes);
int dlclose(void *handle);
void _exit(int status) __attribute__((noreturn));

/*
 * Whose realloc() and free() the program has: its own, if it has any, and then what is made of them must use
 * those, as the C library's would. Volatile, so that the loader's choice is asked, not what stands here.
 */
static void *(*const volatile everybodys_realloc)(void *, size_t) = realloc;
static void (*const volatile everybodys_free)(void *) = free;

LW_INLINE void *record(void *ptr, size_t bytes, enum lw_kind kind, const struct lw_call *call)
{
	if (LW_UNLIKELY(!ptr)) {
		lw_track_nothing(kind, call);
		return NULL;
	}
	if (LW_UNLIKELY(lw_early_owns(ptr)))
		return ptr;
	return lw_track_new(ptr, bytes, kind, call);
}

LW_EXPORT void *malloc(size_t bytes)
{
	if (lw_sample_passes_quickly(bytes))
		return lw_real.malloc(bytes);
	LW_CALLER(call);
	return record(lw_real.malloc(bytes), bytes, LW_KIND_MALLOC, call);
}

LW_EXPORT void *calloc(size_t nr, size_t bytes)
{
	LW_CALLER(call);
	return record(lw_real.calloc(nr, bytes), nr * bytes, LW_KIND_CALLOC, call);
}

LW_EXPORT void free(void *ptr)
{
	if (lw_sample_passed_quickly(ptr)) {
		lw_real.free(ptr);
		return;
	}
	LW_CALLER(call);
	if (!ptr) {
		lw_track_nothing(LW_KIND_FREE, call);
		return;
	}
	if (lw_early_owns(ptr)) {
		lw_early_free(ptr);
		return;
	}
	lw_track_free(ptr, LW_KIND_FREE, call);
	lw_real.free(ptr);
}

LW_EXPORT void cfree(void *ptr)
{
	LW_CALLER(call);
	if (!ptr || lw_early_owns(ptr))
		return;
	lw_track_free(ptr, LW_KIND_FREE, call);
	lw_real.free(ptr);
}

/*
 * C23's, which this libc may not have: another allocator behind us may, and a release that we do not see is a
 * leak that is none. For every allocator that has them they are free() with a promise.
 */
LW_EXPORT void free_sized(void *ptr, size_t bytes)
{
	LW_CALLER(call);
	if (!ptr || lw_early_owns(ptr))
		return;
	if (LW_UNLIKELY(lw_real.is_overridden)) {
		everybodys_free(ptr);
		return;
	}
	lw_track_free_promised(ptr, bytes, call);
	lw_real.free(ptr);
}

LW_EXPORT void free_aligned_sized(void *ptr, size_t align, size_t bytes)
{
	LW_CALLER(call);
	if (!ptr || lw_early_owns(ptr))
		return;
	if (LW_UNLIKELY(lw_real.is_overridden)) {
		everybodys_free(ptr);
		return;
	}
	lw_track_free_aligned(ptr, LW_KIND_FREE, align, &bytes, call);
	lw_real.free(ptr);
}

/* A block of the bootstrap arena moves to the real allocator. */
static void *move_early(void *ptr, size_t bytes)
{
	size_t kept = lw_early_usable_size(ptr);
	void *moved = lw_real.malloc(bytes);

	if (moved)
		__builtin_memcpy(moved, ptr, kept < bytes ? kept : bytes);
	return moved;
}

LW_INLINE void *resize(void *ptr, size_t bytes, const struct lw_call *call)
{
	struct lw_hidden old, fresh;
	struct lw_block block;
	bool is_tracked;
	void *moved;

	if (LW_UNLIKELY(lw_early_owns(ptr)))
		return record(move_early(ptr, bytes), bytes, LW_KIND_REALLOC, call);
	old = lw_hide(ptr);
	is_tracked = ptr && lw_track_detach(old, call, &block);
	moved = lw_real.realloc((void *)lw_reveal(old), bytes);
	if (LW_UNLIKELY(!moved && bytes)) {
		if (is_tracked)
			lw_track_reattach(old, &block);
		lw_track_nothing(LW_KIND_REALLOC, call);
		return NULL;
	}
	if (!is_tracked)
		return record(moved, bytes, LW_KIND_REALLOC, call);
	fresh = lw_hide(moved); /* it may be where it was */
	lw_track_forget(old, &block);
	return record((void *)lw_reveal(fresh), bytes, LW_KIND_REALLOC, call);
}

LW_EXPORT void *realloc(void *ptr, size_t bytes)
{
	LW_CALLER(call);
	return resize(ptr, bytes, call);
}

LW_EXPORT void *reallocarray(void *ptr, size_t nr, size_t bytes)
{
	size_t product;

	LW_CALLER(call);
	if (__builtin_mul_overflow(nr, bytes, &product)) {
		lw_track_nothing(LW_KIND_REALLOC, call);
		errno = ENOMEM;
		return NULL;
	}
	if (LW_UNLIKELY(lw_real.is_overridden))
		return everybodys_realloc(ptr, product);
	return resize(ptr, product, call);
}

LW_EXPORT void *memalign(size_t align, size_t bytes)
{
	LW_CALLER(call);
	return record(lw_real.memalign(align, bytes), bytes, LW_KIND_ALIGNED, call);
}

LW_EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	void *ptr;

	LW_CALLER(call);
	ptr = lw_real.aligned_alloc(align, bytes);
	if (!ptr)
		lw_track_nothing(LW_KIND_ALIGNED, call);
	if (!ptr || lw_early_owns(ptr))
		return ptr;
	return lw_track_new_aligned(ptr, bytes, align, LW_KIND_ALIGNED, call); /* free_aligned_sized() may be told another */
}

LW_EXPORT int posix_memalign(void **out, size_t align, size_t bytes)
{
	int error;

	LW_CALLER(call);
	error = lw_real.posix_memalign(out, align, bytes);
	(void)record(error ? NULL : *out, bytes, LW_KIND_ALIGNED, call);
	return error;
}

LW_EXPORT void *valloc(size_t bytes)
{
	LW_CALLER(call);
	return record(lw_real.valloc(bytes), bytes, LW_KIND_ALIGNED, call);
}

LW_EXPORT void *pvalloc(size_t bytes)
{
	LW_CALLER(call);
	return record(lw_real.pvalloc(bytes), bytes, LW_KIND_ALIGNED, call);
}

LW_EXPORT size_t malloc_usable_size(void *ptr)
{
	return lw_early_owns(ptr) ? lw_early_usable_size(ptr) : lw_real.usable_size(ptr);
}

LW_EXPORT int dlclose(void *handle)
{
	int result;

	if (lw_track_enter()) /* a forked child's tables are made before they are changed */
		lw_track_leave();
	lw_modules_unload_begin();
	result = lw_real.dlclose(handle);
	lw_modules_unload_end(lw_sites_retire);
	return result;
}

LW_EXPORT void exit(int status)
{
	lw_track_exit_begins();
	lw_real.exit(status);
}

LW_EXPORT void _exit(int status)
{
	lw_real.exit_now(lw_report_end(LW_END__EXIT, status));
}

LW_EXPORT void _Exit(int status)
{
	lw_real.exit_now(lw_report_end(LW_END__EXIT, status));
}
