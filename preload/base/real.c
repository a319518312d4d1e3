/* SPDX-License-Identifier: MIT */
/* real.c - looking up the next allocator in line; see real.h. */
#include "preload/base/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "preload/base/early.h"
#include "preload/base/lock.h"
#include "preload/base/sys.h"

static struct lw_lock init_lock = LW_LOCK_INIT;
static bool is_running LW_GUARDED_BY(init_lock);

/*
 * A library whose functions are there for old programs only, by the version of glibc's that they ask for, stands
 * between us and glibc: libc_malloc_debug.so, with which MALLOC_CHECK_ works.
 */
static bool has_old_versions;

static const struct link_map *module_of(const void *address)
{
	struct dl_find_object object;

	return _dl_find_object((void *)(uintptr_t)address, &object) ? NULL : object.dlfo_link_map;
}

static bool is_glibcs(const void *function)
{
	return module_of(function) == module_of((const void *)(uintptr_t)gnu_get_libc_version);
}

/* The version of this name before glibc's own, if there is one; `found` is what is found without. */
static void *find_version(const char *name, void *found)
{
	static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.16", "GLIBC_2.17", "GLIBC_2.26", NULL };

	if (!found || !is_glibcs(found))
		return found;
	for (const char *const *version = versions; *version; version++) {
		void *old = dlvsym(RTLD_NEXT, name, *version);

		if (old && !is_glibcs(old))
			return old;
	}
	(void)dlerror(); /* our failed look-ups are not the program's to read */
	return found;
}

/* A function pointer and dlsym's void pointer are the same bits; memcpy says so without a cast. */
static bool find(void *out, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (LW_UNLIKELY(has_old_versions))
		found = find_version(name, found);
	if (!found)
		return false;
	memcpy(out, &found, sizeof(found));
	return true;
}

/*
 * The functions that few programs call are looked up when they are first called: a look-up costs a
 * microsecond, and a shell script starts thousands of processes. Not while the first ones are being
 * looked up: then the bootstrap arena answers.
 */
static void find_later(void *out, const char *name)
{
	lw_real_init();
	if (lw_load_acquire(&lw_real.is_ready))
		(void)find(out, name);
}

/* ---- what the pointers are before the look-up, and what answers while it runs ---- */

static void *boot_malloc(size_t bytes)
{
	lw_real_init();
	return lw_real.malloc == boot_malloc ? lw_early_malloc(bytes) : lw_real.malloc(bytes);
}

static void *boot_calloc(size_t nr, size_t bytes)
{
	lw_real_init();
	return lw_real.calloc == boot_calloc ? lw_early_calloc(nr, bytes) : lw_real.calloc(nr, bytes);
}

static void *boot_realloc(void *ptr, size_t bytes)
{
	lw_real_init();
	return lw_real.realloc == boot_realloc ? lw_early_realloc(ptr, bytes) : lw_real.realloc(ptr, bytes);
}

static void boot_free(void *ptr)
{
	lw_real_init();
	if (lw_real.free != boot_free)
		lw_real.free(ptr);
}

static void *boot_memalign(size_t align, size_t bytes)
{
	find_later(&lw_real.memalign, "memalign");
	return lw_real.memalign == boot_memalign ? lw_early_memalign(align, bytes)
						 : lw_real.memalign(align, bytes);
}

static void *boot_aligned_alloc(size_t align, size_t bytes)
{
	find_later(&lw_real.aligned_alloc, "aligned_alloc");
	return lw_real.aligned_alloc == boot_aligned_alloc ? lw_early_memalign(align, bytes)
							   : lw_real.aligned_alloc(align, bytes);
}

static int boot_posix_memalign(void **out, size_t align, size_t bytes)
{
	void *ptr;

	find_later(&lw_real.posix_memalign, "posix_memalign");
	if (lw_real.posix_memalign != boot_posix_memalign)
		return lw_real.posix_memalign(out, align, bytes);
	if (align % sizeof(void *) || align & (align - 1) || !align)
		return EINVAL;
	ptr = lw_early_memalign(align, bytes);
	if (!ptr)
		return ENOMEM;
	*out = ptr;
	return 0;
}

static void *boot_valloc(size_t bytes)
{
	find_later(&lw_real.valloc, "valloc");
	return lw_real.valloc == boot_valloc ? lw_early_memalign(4096, bytes) : lw_real.valloc(bytes);
}

static void *boot_pvalloc(size_t bytes)
{
	find_later(&lw_real.pvalloc, "pvalloc");
	if (lw_real.pvalloc != boot_pvalloc)
		return lw_real.pvalloc(bytes);
	if (bytes > SIZE_MAX - 4096) {
		errno = ENOMEM;
		return NULL;
	}
	return lw_early_memalign(4096, LW_ALIGN_UP(bytes, (size_t)4096));
}

static size_t boot_usable_size(void *ptr)
{
	find_later(&lw_real.usable_size, "malloc_usable_size");
	return lw_real.usable_size == boot_usable_size ? 0 : lw_real.usable_size(ptr);
}

static int boot_dlclose(void *handle)
{
	find_later(&lw_real.dlclose, "dlclose");
	return lw_real.dlclose == boot_dlclose ? 0 : lw_real.dlclose(handle);
}

static __attribute__((noreturn)) void boot_exit(int status)
{
	lw_real_init();
	if (lw_real.exit_now != boot_exit)
		lw_real.exit_now(status);
	for (;;)
		(void)lw_syscall(SYS_exit_group, status);
}

static __attribute__((noreturn)) void boot_exit_after_handlers(int status)
{
	find_later(&lw_real.exit, "exit");
	if (lw_real.exit != boot_exit_after_handlers)
		lw_real.exit(status);
	boot_exit(status);
}

struct lw_real lw_real = {
	.malloc = boot_malloc,
	.calloc = boot_calloc,
	.realloc = boot_realloc,
	.free = boot_free,
	.memalign = boot_memalign,
	.aligned_alloc = boot_aligned_alloc,
	.posix_memalign = boot_posix_memalign,
	.valloc = boot_valloc,
	.pvalloc = boot_pvalloc,
	.usable_size = boot_usable_size,
	.dlclose = boot_dlclose,
	.exit_now = boot_exit,
	.exit = boot_exit_after_handlers,
};

/* ---- the rest of the look-up ---- */

static bool is_from(const void *function, const char *const *prefixes)
{
	const struct link_map *map = module_of(function);
	const char *name = map && map->l_name ? strrchr(map->l_name, '/') : NULL;

	if (!name)
		return false;
	for (; *prefixes; prefixes++) {
		if (!strncmp(name + 1, *prefixes, strlen(*prefixes)))
			return true;
	}
	return false;
}

/* Is there such a library among the loaded ones? A C++ runtime linked into the program itself stands before us. */
static bool is_name_there(const char *part)
{
	const struct link_map *map = module_of(&lw_real);

	while (map && map->l_prev)
		map = map->l_prev;
	for (; map; map = map->l_next) {
		if (map->l_name && strstr(map->l_name, part))
			return true;
	}
	return false;
}

/* In a program with fixed addresses a function's address may be that of a stub which leads on. */
static bool is_stub(const void *function)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       symbol->st_shndx == SHN_UNDEF;
}

/* Whose function of this name the program's own calls reach: the first in the global scope. */
static bool is_first_ours(const char *name)
{
	const void *first = dlsym(RTLD_DEFAULT, name);

	return !first || module_of(first) == module_of(&lw_real) || is_stub(first);
}

/*
 * Does the program (or what stands before us) define one of these itself? What the runtime's other
 * operators do, they do through the plain ones: so a program that replaces one changes others.
 */
static bool is_any_not_ours(const char *const *names)
{
	for (; *names; names++) {
		if (!is_first_ours(*names))
			return true;
	}
	return false;
}

/* Is each of these that the next library in line has the runtime's own? */
static bool is_runtimes(const char *const *names)
{
	static const char *const runtimes[] = { "libstdc++.so", "libc++.so", "libc++abi.so", NULL };
	const void *found;

	for (; *names; names++) {
		if (find(&found, *names) && !is_from(found, runtimes))
			return false;
	}
	return true;
}

static void find_deletes(void)
{
	static const char *const names[] = { "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", NULL };
	void *found;

	for (int shape = 0; shape < 2; shape++) {
		(void)find(&lw_real.op_delete[shape], names[shape]);
		(void)find(&lw_real.op_delete_sized[shape], names[2 + shape]);
		if (is_first_ours(names[shape]))
			continue;
		found = dlsym(RTLD_DEFAULT, names[shape]); /* what the default nothrow forms call */
		memcpy(&lw_real.op_delete[shape], &found, sizeof(found));
	}
	lw_real.has_own_delete = is_any_not_ours(names);
	lw_real.delete_is_free = !lw_real.has_own_delete && is_runtimes(names);
}

static void find_operators(void)
{
	static const char *const news[] = { "_Znwm", "_Znam", NULL };

	/* a missing name makes dlsym allocate its message: do not ask for more when the first is missing */
	if (!find(&lw_real.op_new[0], "_Znwm")) {
		(void)dlerror(); /* our failed look-up is not the program's to read */
		return;
	}
	(void)find(&lw_real.op_new[1], "_Znam");
	lw_real.has_own_new = is_any_not_ours(news);
	lw_real.new_is_malloc = !lw_real.has_own_new && is_runtimes(news);
	find_deletes();
	if (find(&lw_real.op_new_aligned[0], "_ZnwmSt11align_val_t") &&
			find(&lw_real.op_new_aligned[1], "_ZnamSt11align_val_t") &&
			find(&lw_real.op_delete_aligned[0], "_ZdlPvSt11align_val_t") &&
			find(&lw_real.op_delete_aligned[1], "_ZdaPvSt11align_val_t"))
		return;
	(void)dlerror();
}

static void find_all(void)
{
	has_old_versions = is_name_there("libc_malloc_debug");
	(void)find(&lw_real.malloc, "malloc");
	(void)find(&lw_real.calloc, "calloc");
	(void)find(&lw_real.realloc, "realloc");
	(void)find(&lw_real.free, "free");
	(void)find(&lw_real.exit_now, "_exit"); /* now: its first call may be in a signal handler */
	if (is_name_there("c++"))
		find_operators();
	lw_real.is_glibc = is_glibcs((const void *)(uintptr_t)lw_real.malloc);
	lw_real.is_overridden = !is_first_ours("malloc") || !is_first_ours("free");
}

bool lw_real_is_calloc_ours(void)
{
	return is_first_ours("calloc");
}

void lw_real_init(void)
{
	if (lw_load_acquire(&lw_real.is_ready) || !lw_lock_try(&init_lock))
		return;
	if (!lw_load(&lw_real.is_ready) && !is_running) { /* running: dlsym allocates in this very thread */
		is_running = true;
		find_all();
		lw_store_release(&lw_real.is_ready, true);
	}
	lw_lock_release(&init_lock);
}
