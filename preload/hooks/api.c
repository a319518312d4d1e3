/* SPDX-License-Identifier: MIT */
/*
 * api.c - what leakwatch.h finds in the library: one object with the functions it may call.
 *
 * One exported name, looked up once by the loader, instead of a dozen weak functions; its first
 * member tells an older or newer header how much is there. Nothing here may be called by us.
 */
#define LEAKWATCH_CALLS
#include "preload/leakwatch.h"

#include "preload/base/sys_x86_64.h"
#include "preload/live/tell.h"
#include "preload/record/asked.h"
#include "preload/record/marks.h"
#include "preload/record/track.h"

_Static_assert((int)LEAKWATCH_AT_DELETE == (int)LW_HINT_DELETE && (int)LEAKWATCH_AT_COPY == (int)LW_HINT_COPY &&
		LEAKWATCH_SCOPED == (int)LW_PENDING_SCOPED, "the header's numbers are hint.h's");

_Static_assert(offsetof(struct leakwatch_thread, sites) == offsetof(struct lw_thread, sites) &&
		offsetof(struct leakwatch_thread, next_site) == offsetof(struct lw_thread, next_site) &&
		offsetof(struct leakwatch_thread, last_site) == offsetof(struct lw_thread, last_site) &&
		offsetof(struct lw_thread, gate) == 0 && LEAKWATCH_GATE_OPEN == (int)LW_GATE_OPEN &&
		LEAKWATCH_GATE_LOOK == (int)LW_GATE_LOOK, "the header's thread is guard.h's");
_Static_assert(sizeof(struct leakwatch_pending) == sizeof(struct lw_pending) &&
		offsetof(struct leakwatch_pending, pc) == offsetof(struct lw_pending, pc) &&
		offsetof(struct leakwatch_pending, file) == offsetof(struct lw_pending, file) &&
		offsetof(struct leakwatch_pending, what) == offsetof(struct lw_pending, what),
		"the header's sites are hint.h's");

LW_EXPORT extern struct leakwatch_calls leakwatch_calls_1;

/* For a thread's first site, and for those that find no room. From then on the header knows where to write. */
static struct leakwatch_pending *push(const struct leakwatch_pending *site)
{
	lw_store(&leakwatch_calls_1.thread_at, (long)((char *)&lw_self - (char *)lw_thread_pointer()));
	return (struct leakwatch_pending *)lw_asked_announce((const struct lw_pending *)site);
}

static void pop(struct leakwatch_pending *place)
{
	lw_asked_take_back((struct lw_pending *)place);
}

static int enabled(void)
{
	return lw_track_is_on();
}

static unsigned long checkpoint(void)
{
	return lw_asked_checkpoint();
}

static size_t unfreed_since(unsigned long moment, size_t *blocks)
{
	uint64_t nr_blocks, bytes = lw_asked_unfreed_since((uint32_t)moment, &nr_blocks);

	if (blocks)
		*blocks = nr_blocks;
	return bytes;
}

static void ignore(const void *ptr)
{
	lw_asked_ignore(ptr);
}

static void pause_here(void)
{
	lw_asked_pause(true);
}

static void resume_here(void)
{
	lw_asked_pause(false);
}

static void report_now(void)
{
	lw_tell_all();
}

static void mark(const char *name)
{
	if (name)
		lw_marks_pass(name);
}

static int scan_now(size_t *bytes, size_t *blocks)
{
	uint64_t regs[LW_NR_REGS] = { 0 }, lost_bytes, lost_blocks;
	int is_done;

	lw_registers_read(regs);
	is_done = lw_tell_lost(regs, &lost_bytes, &lost_blocks);
	__asm__ volatile("" : : "r"(regs) : "memory"); /* the frame stays: what is in these registers counts */
	if (bytes)
		*bytes = lost_bytes;
	if (blocks)
		*blocks = lost_blocks;
	return is_done;
}

struct leakwatch_calls leakwatch_calls_1 = {
	.bytes = sizeof(struct leakwatch_calls),
	.push = push,
	.pop = pop,
	.enabled = enabled,
	.checkpoint = checkpoint,
	.unfreed_since = unfreed_since,
	.ignore = ignore,
	.pause = pause_here,
	.resume = resume_here,
	.report_now = report_now,
	.mark = mark,
	.scan_now = scan_now,
};
