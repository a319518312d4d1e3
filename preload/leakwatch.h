/* SPDX-License-Identifier: MIT */
/*
 * leakwatch.h - for programs that want LeakWatch to know file and line, or to talk to it.
 *
 * Opt-in, file by file: include this after the other headers and compile with -DLEAKWATCH. Without
 * that nothing is changed and nothing costs anything: the functions below are empty. With it the C
 * functions tell their file and line; C++ code says LEAKWATCH_NEW and LEAKWATCH_DELETE, or maps the
 * keywords to them (leakwatch_on.h, leakwatch_off.h). Nothing has to be linked: what is called here
 * is found in libleakwatch.so if that is loaded, and left out if not. See leakwatch.h(3).
 *
 * C99 to C23, C++98 to C++23, gcc and clang.
 */
#ifndef LEAKWATCH_H
#define LEAKWATCH_H

/* first, so that no macro below meets the declaration of what it stands for */
#ifdef __cplusplus
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#endif
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a program may define for LeakWatch to find (in the program itself: link with
 * -Wl,--export-dynamic-symbol=NAME): settings as in LEAKWATCH_OPTIONS, lines leak:PATTERN.
 */
const char *leakwatch_default_options(void);
const char *leakwatch_default_suppressions(void);

#ifdef __cplusplus
}
#endif

#if defined(LEAKWATCH) || defined(LEAKWATCH_CALLS)

/* A site that waits for the call it announces; see LEAKWATCH_INLINE_ leakwatch_push_() below. */
struct leakwatch_pending {
	void *frame, *pc;
	const char *file;
	unsigned line, what;
};

/* The beginning of what the library keeps of each thread. */
struct leakwatch_thread {
	unsigned gate; /* LEAKWATCH_GATE_*, or others: leave it */
	unsigned reserved;
	struct leakwatch_pending *sites, *next_site, *last_site;
};

enum { LEAKWATCH_GATE_OPEN = 1, LEAKWATCH_GATE_LOOK = 2 };

/* What the library offers, as one object; `bytes` tells how much of it is there. */
struct leakwatch_calls {
	size_t bytes;
	long thread_at; /* struct leakwatch_thread, from the thread pointer; 0: push() is to find out */
	struct leakwatch_pending *(*push)(const struct leakwatch_pending *site);
	void (*pop)(struct leakwatch_pending *place);
	int (*enabled)(void);
	unsigned long (*checkpoint)(void);
	size_t (*unfreed_since)(unsigned long checkpoint, size_t *blocks);
	void (*ignore)(const void *ptr);
	void (*pause)(void);
	void (*resume)(void);
	void (*report_now)(void);
	void (*mark)(const char *name);
	int (*scan_now)(size_t *bytes, size_t *blocks);
};

/* What a site announces; with LEAKWATCH_SCOPED it is taken back when the expression is over. */
enum {
	LEAKWATCH_AT_ALLOC,
	LEAKWATCH_AT_COPY,
	LEAKWATCH_AT_FREE,
	LEAKWATCH_AT_NEW,
	LEAKWATCH_AT_DELETE,
	LEAKWATCH_SCOPED = 16
};

#endif

#ifdef LEAKWATCH

#define LEAKWATCH_INLINE_ static __inline__ __attribute__((always_inline, unused))

#ifdef __cplusplus
extern "C" {
#endif
extern const struct leakwatch_calls leakwatch_calls_1 __attribute__((weak));
#if !defined(__PIC__) && !defined(__PIE__)
/* with addresses fixed at link time a weak name that is not there stays 0 for ever: ask at run time */
extern void *leakwatch_dlsym_(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));
#endif
#ifdef __cplusplus
}
#endif

#if !defined(__PIC__) && !defined(__PIE__)
static const struct leakwatch_calls *leakwatch_found_ __attribute__((unused));
__attribute__((constructor(101), unused)) static void leakwatch_find_(void)
{
	if (leakwatch_dlsym_)
		leakwatch_found_ =
			(const struct leakwatch_calls *)leakwatch_dlsym_(0, "leakwatch_calls_1");
}
LEAKWATCH_INLINE_ const struct leakwatch_calls *leakwatch_calls_(void)
{
	return leakwatch_found_;
}
#else
LEAKWATCH_INLINE_ const struct leakwatch_calls *leakwatch_calls_(void)
{
	return &leakwatch_calls_1;
}
#endif

/*
 * The site is written straight into the thread's own memory; where, is for taking it back. A signal
 * handler that comes between finds the place taken.
 */
#if defined(__x86_64__) && defined(__LP64__)
#define LEAKWATCH_DIRECT_ 1
LEAKWATCH_INLINE_ struct leakwatch_thread *leakwatch_thread_(const struct leakwatch_calls *calls)
{
	char *pointer;

	__asm__ volatile("mov{q}\t{%%fs:0, %0|%0, QWORD PTR fs:0}" : "=r"(pointer));
	return (struct leakwatch_thread *)(void *)(pointer + calls->thread_at);
}
LEAKWATCH_INLINE_ void *leakwatch_here_(void)
{
	void *pc;

	__asm__ volatile("lea{q}\t{0(%%rip), %0|%0, [rip]}" : "=r"(pc));
	return pc;
}
#else
__attribute__((noinline, unused)) static void *leakwatch_here_(void)
{
	return __builtin_return_address(0);
}
#endif

LEAKWATCH_INLINE_ struct leakwatch_pending *leakwatch_push_(const char *file, unsigned line, unsigned what)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();
	struct leakwatch_pending *place = 0, site;
#ifdef LEAKWATCH_DIRECT_
	struct leakwatch_thread *thread;

	if (calls) {
		thread = leakwatch_thread_(calls);
		if (__builtin_expect(calls->thread_at && thread->next_site != thread->last_site, 1)) {
			place = thread->next_site;
			thread->next_site = place + 1;
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
			place->frame = __builtin_frame_address(0);
			place->pc = leakwatch_here_();
			place->file = file;
			place->line = line;
			place->what = what;
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
			if (thread->gate == LEAKWATCH_GATE_OPEN)
				thread->gate = LEAKWATCH_GATE_LOOK;
			calls = 0;
		}
	}
#endif
	if (calls) {
		site.frame = __builtin_frame_address(0);
		site.pc = leakwatch_here_();
		site.file = file;
		site.line = line;
		site.what = what;
		place = calls->push(&site);
	}
	/* else the compiler makes a copy of what follows for each way, and the program has two calls for one */
	__asm__("" : "+r"(place));
	return place;
}

#ifdef __cplusplus
/* A site that was pushed: so there is a library, and it knows where its threads are. */
LEAKWATCH_INLINE_ void leakwatch_pop_(struct leakwatch_pending *place)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();
#ifdef LEAKWATCH_DIRECT_
	struct leakwatch_thread *thread = leakwatch_thread_(calls);

	/* below its sites: a coroutine has gone on in another thread */
	if (thread->next_site > place && place >= thread->sites)
		thread->next_site = place;
#else
	calls->pop(place);
#endif
}
#endif

/* Is the program running under LeakWatch? */
LEAKWATCH_INLINE_ int leakwatch_enabled(void)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	return calls ? calls->enabled() : 0;
}

/* This moment, for leakwatch_unfreed_since(). */
LEAKWATCH_INLINE_ unsigned long leakwatch_checkpoint(void)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	return calls ? calls->checkpoint() : 0;
}

/* Bytes that were allocated after it, in any thread, and are not freed; blocks may be NULL. */
LEAKWATCH_INLINE_ size_t leakwatch_unfreed_since(unsigned long checkpoint, size_t *blocks)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		return calls->unfreed_since(checkpoint, blocks);
	if (blocks)
		*blocks = 0;
	return 0;
}

/* This block is meant to stay: it is no leak. It may still be freed. */
LEAKWATCH_INLINE_ void leakwatch_ignore(const void *ptr)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		calls->ignore(ptr);
}

/* What this thread allocates until the matching leakwatch_resume() is not recorded. */
LEAKWATCH_INLINE_ void leakwatch_pause(void)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		calls->pause();
}

LEAKWATCH_INLINE_ void leakwatch_resume(void)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		calls->resume();
}

/* A report as at the end, of what is held now. */
LEAKWATCH_INLINE_ void leakwatch_report_now(void)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		calls->report_now();
}

/* One unit of work of this name is done: reports say what is held more from one to the next. */
LEAKWATCH_INLINE_ void leakwatch_mark(const char *name)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (calls)
		calls->mark(name);
}

/*
 * Looks now for memory that nothing points to any more: how much it is; either may be NULL. Returns 0
 * when that could not be done. The program stands still for a moment only, the caller until it is done.
 */
LEAKWATCH_INLINE_ int leakwatch_scan_now(size_t *bytes, size_t *blocks)
{
	const struct leakwatch_calls *calls = leakwatch_calls_();

	if (bytes)
		*bytes = 0;
	if (blocks)
		*blocks = 0;
	/* a library that is older than this header has less */
	if (!calls || calls->bytes < offsetof(struct leakwatch_calls, scan_now) + sizeof(calls->scan_now))
		return 0;
	return calls->scan_now(bytes, blocks);
}

#ifdef __cplusplus

#if __cplusplus >= 202002L
#define LEAKWATCH_CONSTEXPR_ constexpr __attribute__((always_inline))
#define LEAKWATCH_AT_COMPILE_TIME_ __builtin_is_constant_evaluated()
#else
#define LEAKWATCH_CONSTEXPR_ inline __attribute__((always_inline))
#define LEAKWATCH_AT_COMPILE_TIME_ false
#endif

/* A site that is pending until the full expression in which it stands is over, however it ends. */
class leakwatch_at {
	leakwatch_pending *place_;

public:
	LEAKWATCH_CONSTEXPR_ leakwatch_at(const char *file, unsigned line, unsigned what)
		: place_(LEAKWATCH_AT_COMPILE_TIME_ ? 0 : leakwatch_push_(file, line, what | LEAKWATCH_SCOPED))
	{
	}
	LEAKWATCH_CONSTEXPR_ ~leakwatch_at()
	{
		if (place_)
			leakwatch_pop_(place_);
	}
	LEAKWATCH_CONSTEXPR_ operator bool() const
	{
		return false;
	}
};

/* `*new T` with the keyword mapped */
class leakwatch_object_at {
};

/* Evaluated from left to right by every compiler that C++17 binds, by clang, and by gcc since 7. */
template <class T> LEAKWATCH_CONSTEXPR_ T *operator->*(const leakwatch_at &, T *made)
{
	return made;
}
LEAKWATCH_CONSTEXPR_ const leakwatch_at &operator->*(const leakwatch_at &, const leakwatch_at &inner)
{
	return inner;
}
LEAKWATCH_CONSTEXPR_ leakwatch_object_at operator*(const leakwatch_at &)
{
	return leakwatch_object_at();
}
template <class T> LEAKWATCH_CONSTEXPR_ T &operator->*(const leakwatch_object_at &, T *made)
{
	return *made;
}

/* in parentheses, so that ::new and ::delete are errors rather than the class's own operators */
#define LEAKWATCH_NEW_ (leakwatch_at(__FILE__, __LINE__, LEAKWATCH_AT_NEW))->*new
#define LEAKWATCH_DELETE_ (leakwatch_at(__FILE__, __LINE__, LEAKWATCH_AT_DELETE)) ? (void)0 : delete
#define LEAKWATCH_NEW (leakwatch_at(__FILE__, __LINE__, LEAKWATCH_AT_NEW))->*new
#define LEAKWATCH_DELETE (leakwatch_at(__FILE__, __LINE__, LEAKWATCH_AT_DELETE)) ? (void)0 : delete
#define LEAKWATCH_SITE_(what) ((void)leakwatch_at(__FILE__, __LINE__, what))
#else
#define LEAKWATCH_SITE_(what) ((void)leakwatch_push_(__FILE__, __LINE__, what))
#endif

/*
 * The name stays, and the site hides in an argument: a member, a pointer or (malloc)(n) of the same
 * name means what it meant. It stands where a null pointer constant is least likely.
 */
#undef malloc
#undef calloc
#undef realloc
#undef reallocarray
#undef free
#undef strdup
#undef strndup
#undef aligned_alloc
#undef posix_memalign
#define malloc(bytes) malloc((LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))
#define calloc(nr, bytes) calloc((nr), (LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))
#define realloc(ptr, bytes) realloc((ptr), (LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))
#define reallocarray(ptr, nr, bytes)                                                               \
	reallocarray((ptr), (nr), (LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))
#define free(ptr) free((LEAKWATCH_SITE_(LEAKWATCH_AT_FREE), (ptr)))
#define strdup(text) strdup((LEAKWATCH_SITE_(LEAKWATCH_AT_COPY), (text)))
#define strndup(text, bytes) strndup((text), (LEAKWATCH_SITE_(LEAKWATCH_AT_COPY), (bytes)))
#define aligned_alloc(align, bytes)                                                                \
	aligned_alloc((align), (LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))
#define posix_memalign(out, align, bytes)                                                          \
	posix_memalign((out), (align), (LEAKWATCH_SITE_(LEAKWATCH_AT_ALLOC), (bytes)))

#else /* !LEAKWATCH */

#define LEAKWATCH_NEW_ new
#define LEAKWATCH_DELETE_ delete
#define LEAKWATCH_NEW new
#define LEAKWATCH_DELETE delete
#define LEAKWATCH_NONE_ static __inline__ __attribute__((always_inline, unused))

LEAKWATCH_NONE_ int leakwatch_enabled(void)
{
	return 0;
}
LEAKWATCH_NONE_ unsigned long leakwatch_checkpoint(void)
{
	return 0;
}
LEAKWATCH_NONE_ size_t leakwatch_unfreed_since(unsigned long checkpoint, size_t *blocks)
{
	(void)checkpoint;
	if (blocks)
		*blocks = 0;
	return 0;
}
LEAKWATCH_NONE_ void leakwatch_ignore(const void *ptr)
{
	(void)ptr;
}
LEAKWATCH_NONE_ void leakwatch_pause(void)
{
}
LEAKWATCH_NONE_ void leakwatch_resume(void)
{
}
LEAKWATCH_NONE_ void leakwatch_report_now(void)
{
}
LEAKWATCH_NONE_ void leakwatch_mark(const char *name)
{
	(void)name;
}

LEAKWATCH_NONE_ int leakwatch_scan_now(size_t *bytes, size_t *blocks)
{
	if (bytes)
		*bytes = 0;
	if (blocks)
		*blocks = 0;
	return 0;
}

#undef LEAKWATCH_NONE_
#endif /* LEAKWATCH */

#endif /* LEAKWATCH_H */
