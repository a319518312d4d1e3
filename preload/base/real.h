/* SPDX-License-Identifier: MIT */
/*
 * real.h - the next allocator in line, looked up once with dlsym(RTLD_NEXT).
 *
 * Each pointer is callable at any time: until the look-up is done it leads to a function that does
 * it, and, should dlsym itself allocate meanwhile, to the bootstrap arena. Nothing here is tracked.
 */
#ifndef LW_BASE_REAL_H
#define LW_BASE_REAL_H

#include "preload/base/base.h"

struct lw_real {
	/* The look-up is done; until then call lw_real_init() before asking for what is not a function. */
	bool is_ready;
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*usable_size)(void *);
	int (*dlclose)(void *);
	void (*exit_now)(int) __attribute__((noreturn)); /* _exit */
	void (*exit)(int) __attribute__((noreturn));

	/* Operators new and delete of the next library in line; NULL where the global scope has none. */
	void *(*op_new[2])(size_t);			/* [0] new, [1] new[] */
	void *(*op_new_aligned[2])(size_t, size_t);
	void (*op_delete[2])(void *); /* the program's own, if it has them */
	void (*op_delete_sized[2])(void *, size_t); /* NULL: none */
	void (*op_delete_aligned[2])(void *, size_t);

	/* All operators new that calls reach are libstdc++'s or libc++'s own and ours: new is malloc. */
	bool new_is_malloc;
	/* The same for delete: it is free. */
	bool delete_is_free;
	/* The program has operators of its own that stand before ours: calls of those do not reach us. */
	bool has_own_new, has_own_delete;
	/* The allocator is glibc's: blocks are at least 32 bytes apart. */
	bool is_glibc;
	/* The program's own malloc or free stands before ours: C calls do not reach us. */
	bool is_overridden;
};

extern struct lw_real lw_real;

/*
 * Idempotent; any thread; before anything else. Does not wait: while one thread looks up (and may
 * wait for the loader's lock), others are served from the bootstrap arena.
 */
void lw_real_init(void);

/* Does libc's own calloc come to our hook? Not when the program defines one. */
bool lw_real_is_calloc_ours(void);

#endif
