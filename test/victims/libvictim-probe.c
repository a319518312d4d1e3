/* SPDX-License-Identifier: MIT */
/* An allocator that is next in line behind LeakWatch: libc's, with every call counted. */
#include <errno.h>
#include <stddef.h>

unsigned long probe_calls(void);
void *malloc(size_t bytes);
void *calloc(size_t nr, size_t bytes);
void *realloc(void *old, size_t bytes);
void free(void *p);
void *memalign(size_t align, size_t bytes);
void *aligned_alloc(size_t align, size_t bytes);
int posix_memalign(void **out, size_t align, size_t bytes);

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);

static unsigned long nr_calls;

static void count(void)
{
	__atomic_add_fetch(&nr_calls, 1, __ATOMIC_RELAXED);
}

unsigned long probe_calls(void)
{
	return __atomic_load_n(&nr_calls, __ATOMIC_RELAXED);
}

void *malloc(size_t bytes)
{
	count();
	return __libc_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	count();
	return __libc_calloc(nr, bytes);
}

void *realloc(void *old, size_t bytes)
{
	count();
	return __libc_realloc(old, bytes);
}

void free(void *p)
{
	if (!p)
		return; /* no call worth counting: libc frees NULL often, LeakWatch keeps it to itself */
	count();
	__libc_free(p);
}

/* Not by way of memalign: that call would pass through LeakWatch and be a second one. */
static void *align_block(size_t align, size_t bytes)
{
	count();
	return __libc_memalign(align, bytes);
}

void *memalign(size_t align, size_t bytes)
{
	return align_block(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return align_block(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *p;

	if (align & (align - 1) || align % sizeof(void *) || !align)
		return EINVAL;
	p = align_block(align, bytes);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}
