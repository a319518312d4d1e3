/* SPDX-License-Identifier: MIT */
/*
 * base.h - the attributes every file of the preloaded library uses. No functions, no state.
 *
 * LW_EXPORT marks what the target may see; everything else is hidden by the build. LW_TLS is
 * initial-exec, because a first touch of global-dynamic TLS allocates, inside malloc.
 */
#ifndef LW_BASE_H
#define LW_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LW_EXPORT __attribute__((visibility("default")))
#define LW_TLS __thread __attribute__((tls_model("initial-exec")))
#define LW_NOINLINE __attribute__((noinline))
#define LW_INLINE static inline __attribute__((always_inline))
#define LW_COLD __attribute__((cold, noinline))
#define LW_HOT __attribute__((hot, noinline))
#define LW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/*
 * For what is large, or untouched in most processes: it lies behind all other zeroed data (the linker sorts
 * by name), so that a short process touches a page or two and not one for each file.
 */
#define LW_ROOM __attribute__((section(".bss.z_room")))
#define LW_LIKELY(x) __builtin_expect(!!(x), 1)
#define LW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LW_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define LW_ALIGN_UP(n, to) (((n) + (to)-1) & ~((__typeof__(n))(to)-1))

/* One cache line; nothing written by one thread and read by another shares one by accident. */
#define LW_CACHE_LINE 64

/*
 * Atomics by the memory order they need. Relaxed accesses stand where a word is read while another
 * thread may write it, and nothing else is published through it.
 */
#define lw_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define lw_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define lw_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define lw_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* ThreadSanitizer knows no fences: there only the compiler is held back, which is all it takes on x86. */
#ifdef __SANITIZE_THREAD__
#define lw_fence(order) __atomic_signal_fence(order)
#else
#define lw_fence(order) __atomic_thread_fence(order)
#endif
#define lw_add(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
/* For a word with one writer: other threads read it, so no tearing, but no lock prefix either. */
#define lw_bump(p, v) lw_store((p), lw_load(p) + (v))

#endif
