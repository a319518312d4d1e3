/* SPDX-License-Identifier: MIT */
/*
 * cxx.c - all forms of operator new and delete, interposed from C under their mangled names.
 *
 * Where the next operators in line are libstdc++'s or libc++'s own, new is malloc and delete is
 * free, and the real malloc and free are called directly; only when memory runs out is the real
 * operator called, because new_handler and bad_alloc are its business. It runs with the gate open,
 * so whatever leaves it (an exception, a siglongjmp out of new_handler) leaves nothing behind.
 * Other operators (an allocator's, or a library's of the program) are always called.
 *
 * A C program may load a C++ plugin with RTLD_LOCAL: then the global scope has no operator new.
 * Memory comes from malloc, and when it runs out the operator of the caller's own library throws.
 * It is looked up each time: a remembered pointer would outlive the library.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/base/early.h"
#include "preload/base/guard.h"
#include "preload/base/real.h"
#include "preload/base/sys_x86_64.h"
#include "preload/record/sample.h"
#include "preload/record/track.h"

enum { SCALAR, ARRAY };

static const enum lw_kind new_kinds[] = { LW_KIND_NEW, LW_KIND_NEW_ARRAY };
static const enum lw_kind delete_kinds[] = { LW_KIND_DELETE, LW_KIND_DELETE_ARRAY };

/* The operator that the caller's own library would have used without us, or NULL. */
static void *find_callers(const struct lw_call *call, const char *name)
{
	struct dl_find_object caller, found;
	void *function, *handle;

	if (_dl_find_object((void *)call->pc, &caller))
		return NULL;
	/* its link map is no handle yet: one that was only loaded as a dependency has no search list */
	handle = dlopen(caller.dlfo_link_map->l_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	function = dlsym(handle, name);
	(void)lw_real.dlclose(handle);
	if (!function || _dl_find_object(function, &found))
		return NULL;
	/* not ourselves again */
	return (uintptr_t)found.dlfo_map_start <= (uintptr_t)&lw_real &&
			       (uintptr_t)&lw_real < (uintptr_t)found.dlfo_map_end ? NULL : function;
}

/*
 * Memory ran out: new_handler and bad_alloc are the real operator's. May not return. Of the caller's
 * library it is the plain one for arrays too: its new[] jumps to new, and with it to us, from nowhere.
 */
static LW_COLD void *fail_new(size_t bytes, int shape, const struct lw_call *call)
{
	void *(*op)(size_t) = lw_real.op_new[shape];
	void *found;

	if (!op) {
		found = find_callers(call, "_Znwm");
		memcpy(&op, &found, sizeof(op));
	}
	return op ? op(bytes) : NULL;
}

static LW_COLD void *fail_new_aligned(size_t bytes, size_t align, int shape, const struct lw_call *call)
{
	void *(*op)(size_t, size_t) = lw_real.op_new_aligned[shape];
	void *found;

	if (!op) {
		found = find_callers(call, "_ZnwmSt11align_val_t");
		memcpy(&op, &found, sizeof(op));
	}
	return op ? op(bytes, align) : NULL;
}

/* The nothrow forms: the real one asks new_handler and catches what is thrown. */
static LW_COLD void *fail_new_nothrow(size_t bytes, const void *tag, int shape, const struct lw_call *call)
{
	static const char *const names[] = { "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t" };
	void *(*op)(size_t, const void *);
	void *found = lw_real.op_new[shape] ? dlsym(RTLD_NEXT, names[shape])
					    : find_callers(call, names[shape]);

	memcpy(&op, &found, sizeof(op));
	return op ? op(bytes, tag) : NULL;
}

static LW_COLD void *fail_new_aligned_nothrow(size_t bytes, size_t align, const void *tag, int shape,
		const struct lw_call *call)
{
	static const char *const names[] = { "_ZnwmSt11align_val_tRKSt9nothrow_t",
		"_ZnamSt11align_val_tRKSt9nothrow_t" };
	void *(*op)(size_t, size_t, const void *);
	void *found = lw_real.op_new[shape] ? dlsym(RTLD_NEXT, names[shape])
					    : find_callers(call, names[shape]);

	memcpy(&op, &found, sizeof(op));
	return op ? op(bytes, align, tag) : NULL;
}

LW_INLINE bool is_plain(int shape)
{
	return lw_real.new_is_malloc || !lw_real.op_new[shape];
}

LW_INLINE void *record(void *ptr, size_t bytes, int shape, const struct lw_call *call)
{
	if (LW_UNLIKELY(!ptr || lw_early_owns(ptr)))
		return ptr;
	return lw_track_new(ptr, bytes, new_kinds[shape], call);
}

static void *record_aligned(void *ptr, size_t bytes, size_t align, int shape, const struct lw_call *call)
{
	if (LW_UNLIKELY(!ptr || lw_early_owns(ptr)))
		return ptr;
	return lw_track_new_aligned(ptr, bytes, align, new_kinds[shape], call);
}

/* The block came from a foreign operator, which may have passed through our malloc on its way. */
static void *record_outer(void *ptr, size_t bytes, int shape, const struct lw_call *call)
{
	struct lw_hidden hidden = lw_hide(ptr);

	if (ptr)
		lw_track_undo(hidden);
	return record((void *)lw_reveal(hidden), bytes, shape, call);
}

static void *record_outer_aligned(void *ptr, size_t bytes, size_t align, int shape,
		const struct lw_call *call)
{
	struct lw_hidden hidden = lw_hide(ptr);

	if (ptr)
		lw_track_undo(hidden);
	return record_aligned((void *)lw_reveal(hidden), bytes, align, shape, call);
}

LW_INLINE void *allocate(size_t bytes, int shape, const struct lw_call *call)
{
	void *ptr;

	if (LW_UNLIKELY(!lw_load_acquire(&lw_real.is_ready)))
		lw_real_init();
	if (LW_LIKELY(is_plain(shape))) {
		ptr = lw_real.malloc(bytes ? bytes : 1);
		if (LW_LIKELY(ptr))
			return record(ptr, bytes, shape, call);
	}
	return record_outer(fail_new(bytes, shape, call), bytes, shape, call);
}

LW_INLINE void *allocate_nothrow(size_t bytes, const void *tag, int shape, const struct lw_call *call)
{
	void *ptr;

	if (LW_UNLIKELY(!lw_load_acquire(&lw_real.is_ready)))
		lw_real_init();
	if (LW_LIKELY(is_plain(shape))) {
		ptr = lw_real.malloc(bytes ? bytes : 1);
		if (LW_LIKELY(ptr))
			return record(ptr, bytes, shape, call);
	}
	return record_outer(fail_new_nothrow(bytes, tag, shape, call), bytes, shape, call);
}

/* As libstdc++ does it: aligned_alloc of the size rounded up to the alignment. */
LW_INLINE void *try_aligned(size_t bytes, size_t align)
{
	size_t whole = bytes ? bytes : 1;

	if (!align || align & (align - 1) || whole > SIZE_MAX - align)
		return NULL;
	if (align < sizeof(void *))
		align = sizeof(void *);
	return lw_real.aligned_alloc(align, LW_ALIGN_UP(whole, align));
}

LW_INLINE void *allocate_aligned(size_t bytes, size_t align, int shape, const struct lw_call *call)
{
	void *ptr;

	if (LW_UNLIKELY(!lw_load_acquire(&lw_real.is_ready)))
		lw_real_init();
	if (LW_LIKELY(is_plain(shape))) {
		ptr = try_aligned(bytes, align);
		if (LW_LIKELY(ptr))
			return record_aligned(ptr, bytes, align, shape, call);
	}
	return record_outer_aligned(fail_new_aligned(bytes, align, shape, call), bytes, align, shape, call);
}

LW_INLINE void *allocate_aligned_nothrow(size_t bytes, size_t align, const void *tag, int shape,
		const struct lw_call *call)
{
	void *ptr;

	if (LW_UNLIKELY(!lw_load_acquire(&lw_real.is_ready)))
		lw_real_init();
	if (LW_LIKELY(is_plain(shape))) {
		ptr = try_aligned(bytes, align);
		if (LW_LIKELY(ptr))
			return record_aligned(ptr, bytes, align, shape, call);
	}
	ptr = fail_new_aligned_nothrow(bytes, align, tag, shape, call);
	return record_outer_aligned(ptr, bytes, align, shape, call);
}

/*
 * The real release by a foreign operator. It may come back to our hooks with the same pointer, whose
 * record is gone: that is not the program releasing it twice.
 */
static LW_COLD void pass_on(void *ptr, int shape)
{
	uintptr_t outer = lw_self.passing;

	lw_self.passing = (uintptr_t)ptr;
	lw_real.op_delete[shape](ptr);
	lw_self.passing = outer;
}

static LW_COLD void pass_on_sized(void *ptr, size_t bytes, int shape)
{
	uintptr_t outer = lw_self.passing;

	if (!lw_real.op_delete_sized[shape]) {
		pass_on(ptr, shape);
		return;
	}
	lw_self.passing = (uintptr_t)ptr;
	lw_real.op_delete_sized[shape](ptr, bytes);
	lw_self.passing = outer;
}

static LW_COLD void pass_on_aligned(void *ptr, size_t align, int shape)
{
	uintptr_t outer = lw_self.passing;

	if (!lw_real.op_delete_aligned[shape]) {
		pass_on(ptr, shape);
		return;
	}
	lw_self.passing = (uintptr_t)ptr;
	lw_real.op_delete_aligned[shape](ptr, align);
	lw_self.passing = outer;
}

LW_INLINE bool is_free(int shape)
{
	return LW_LIKELY(lw_real.delete_is_free) || !lw_real.op_delete[shape];
}

LW_INLINE void release(void *ptr, int shape, const struct lw_call *call)
{
	if (!ptr || lw_early_owns(ptr))
		return;
	lw_track_free(ptr, delete_kinds[shape], call);
	if (LW_LIKELY(is_free(shape)))
		lw_real.free(ptr);
	else
		pass_on(ptr, shape);
}

LW_INLINE void release_sized(void *ptr, size_t bytes, int shape, const struct lw_call *call)
{
	if (!ptr || lw_early_owns(ptr))
		return;
	lw_track_free_sized(ptr, delete_kinds[shape], bytes, call);
	if (LW_LIKELY(is_free(shape)))
		lw_real.free(ptr);
	else
		pass_on_sized(ptr, bytes, shape);
}

LW_INLINE void release_aligned(void *ptr, size_t align, const size_t *bytes, int shape,
		const struct lw_call *call)
{
	if (!ptr || lw_early_owns(ptr))
		return;
	lw_track_free_aligned(ptr, delete_kinds[shape], align, bytes, call);
	if (LW_LIKELY(is_free(shape)))
		lw_real.free(ptr);
	else
		pass_on_aligned(ptr, align, shape);
}

/* While sampling is on, what is passed over goes straight on, where that is malloc and free. */
#define PASS_NEW(n)                                                                                \
	if (lw_sample_is_on_here() && lw_real.new_is_malloc && lw_sample_passes_quickly(n)) {      \
		void *passed_ = lw_real.malloc((n) ? (n) : 1);                                     \
		if (LW_LIKELY(passed_))                                                            \
			return passed_;                                                            \
	}
#define PASS_DELETE(ptr)                                                                           \
	if (lw_sample_passed_quickly(ptr) && lw_real.delete_is_free) {                             \
		lw_real.free(ptr);                                                                 \
		return;                                                                            \
	}
#define PASS_NOTHING

/* One definition a form: prototype, then the body with the caller's frame at hand. */
#define HOOK(type, name, parameters, pass, ...)                                                    \
	type name parameters;                                                                      \
	LW_EXPORT type name parameters                                                             \
	{                                                                                          \
		pass                                                                               \
		LW_CALLER(call);                                                                   \
		__VA_ARGS__;                                                                       \
	}

HOOK(void *, _Znwm, (size_t n), PASS_NEW(n), return allocate(n, SCALAR, call))
HOOK(void *, _Znam, (size_t n), PASS_NEW(n), return allocate(n, ARRAY, call))
HOOK(void *, _ZnwmRKSt9nothrow_t, (size_t n, const void *tag), PASS_NEW(n),
		return allocate_nothrow(n, tag, SCALAR, call))
HOOK(void *, _ZnamRKSt9nothrow_t, (size_t n, const void *tag), PASS_NEW(n),
		return allocate_nothrow(n, tag, ARRAY, call))
HOOK(void *, _ZnwmSt11align_val_t, (size_t n, size_t align), PASS_NOTHING,
		return allocate_aligned(n, align, SCALAR, call))
HOOK(void *, _ZnamSt11align_val_t, (size_t n, size_t align), PASS_NOTHING,
		return allocate_aligned(n, align, ARRAY, call))
HOOK(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t align, const void *tag), PASS_NOTHING,
		return allocate_aligned_nothrow(n, align, tag, SCALAR, call))
HOOK(void *, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t align, const void *tag), PASS_NOTHING,
		return allocate_aligned_nothrow(n, align, tag, ARRAY, call))

HOOK(void, _ZdlPv, (void *ptr), PASS_DELETE(ptr), release(ptr, SCALAR, call))
HOOK(void, _ZdaPv, (void *ptr), PASS_DELETE(ptr), release(ptr, ARRAY, call))
HOOK(void, _ZdlPvm, (void *ptr, size_t n), PASS_DELETE(ptr), release_sized(ptr, n, SCALAR, call))
HOOK(void, _ZdaPvm, (void *ptr, size_t n), PASS_DELETE(ptr), release_sized(ptr, n, ARRAY, call))
HOOK(void, _ZdlPvRKSt9nothrow_t, (void *ptr, const void *tag), PASS_DELETE(ptr), (void)tag; release(ptr, SCALAR, call))
HOOK(void, _ZdaPvRKSt9nothrow_t, (void *ptr, const void *tag), PASS_DELETE(ptr), (void)tag; release(ptr, ARRAY, call))
HOOK(void, _ZdlPvSt11align_val_t, (void *ptr, size_t align), PASS_NOTHING, release_aligned(ptr, align, NULL, SCALAR, call))
HOOK(void, _ZdaPvSt11align_val_t, (void *ptr, size_t align), PASS_NOTHING, release_aligned(ptr, align, NULL, ARRAY, call))
HOOK(void, _ZdlPvmSt11align_val_t, (void *ptr, size_t n, size_t align), PASS_NOTHING,
		release_aligned(ptr, align, &n, SCALAR, call))
HOOK(void, _ZdaPvmSt11align_val_t, (void *ptr, size_t n, size_t align), PASS_NOTHING,
		release_aligned(ptr, align, &n, ARRAY, call))
HOOK(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, (void *ptr, size_t align, const void *tag), PASS_NOTHING,
		(void)tag; release_aligned(ptr, align, NULL, SCALAR, call))
HOOK(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, (void *ptr, size_t align, const void *tag), PASS_NOTHING,
		(void)tag; release_aligned(ptr, align, NULL, ARRAY, call))
