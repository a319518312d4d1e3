/* SPDX-License-Identifier: MIT */
/* hint.c - matching announced sites with the calls they announce; see hint.h. */
#include "preload/record/hint.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "preload/base/hot.h"
#include "preload/share/box.h"
#include "preload/unwind/cfi.h"
#include "preload/unwind/rules.h"

enum {
	MAX_FILE_BYTES = 4095,
	INDEX_BITS = 15,	   /* of file:line -> hint; twice LW_MAX_HINTS */
	SAME_STACK_BYTES = 8 << 20, /* further apart, two stack pointers are of different stacks */
};

_Static_assert(LW_MAX_HINTS * 2 <= 1 << INDEX_BITS, "the index always has an empty entry");

/* ---- file and line, interned ---- */

static uint16_t index_of_hints[1 << INDEX_BITS] LW_ROOM LW_GUARDED_BY(lw_sites_lock);
static const char own_code_mark; /* an address in this library */

static uint32_t hash_hint(const char *file, size_t nr_bytes, uint32_t line)
{
	uint64_t hash = line;

	for (size_t i = 0; i < nr_bytes; i++)
		hash = (hash ^ (uint8_t)file[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - INDEX_BITS));
}

static bool is_hint(uint32_t id, const char *file, size_t nr_bytes, uint32_t line)
{
	const struct lw_hint *hint = lw_box_hint(id);
	const char *known = lw_box_pool(hint->file_off);

	return hint->line == line && !strncmp(known, file, nr_bytes) && !known[nr_bytes];
}

/* The text of a file name that another hint has already, so that a thousand lines share one. */
static uint32_t find_file_locked(const char *file, size_t nr_bytes) LW_HOLDS(lw_sites_lock)
{
	for (uint32_t id = lw_own.nr_hints; id-- > 1;) {
		const char *known = lw_box_pool(lw_box_hint(id)->file_off);

		if (!strncmp(known, file, nr_bytes) && !known[nr_bytes])
			return lw_box_hint(id)->file_off;
	}
	return 0;
}

static uint32_t add_hint_locked(const char *file, size_t nr_bytes, uint32_t line) LW_HOLDS(lw_sites_lock)
{
	uint32_t id = lw_own.nr_hints, off;

	if (id >= lw_own.max_hints)
		return 0;
	off = find_file_locked(file, nr_bytes);
	if (!off) {
		off = lw_box_take_locked(nr_bytes + 1);
		if (!off)
			return 0;
		memcpy(lw_box_pool(off), file, nr_bytes);
	}
	*lw_box_hint(id) = (struct lw_hint){ off, line };
	LW_BOX_PUBLISH(nr_hints, id + 1);
	return id;
}

static uint32_t intern_locked(const char *file, size_t nr_bytes, uint32_t line) LW_HOLDS(lw_sites_lock)
{
	uint32_t at = hash_hint(file, nr_bytes, line), id;

	for (;; at = (at + 1) % LW_ARRAY_LENGTH(index_of_hints)) {
		id = index_of_hints[at];
		if (!id)
			break;
		if (id < lw_own.nr_hints && is_hint(id, file, nr_bytes, line))
			return id;
	}
	id = add_hint_locked(file, nr_bytes, line);
	index_of_hints[at] = (uint16_t)id;
	return id;
}

static uint32_t intern(const char *file, uint32_t line)
{
	size_t nr_bytes = strnlen(file, MAX_FILE_BYTES);
	uint32_t id;

	lw_lock_acquire(&lw_sites_lock);
	id = intern_locked(file, nr_bytes, line);
	lw_lock_release(&lw_sites_lock);
	if (!id)
		lw_box_drop(LW_DROP_HINTS);
	return id;
}

/* ---- places: what is known of the code that pushed ---- */

static LW_COLD void fill_place(struct lw_hint_place *place, const struct lw_pending *site)
{
	struct lw_hint_place found = { .pc = site->pc, .file = site->file, .line = site->line };

	found.generation = lw_load_acquire(&lw_hot.generation);
	if (!lw_cfi_function(site->pc, &found.start, &found.end))
		found.start = found.end = site->pc;
	found.hint = intern(site->file, site->line);
	*place = found;
}

static struct lw_hint_place *find_place(struct lw_hints *hints, const struct lw_pending *site)
{
	uint64_t mixed = site->pc * UINT64_C(0x9e3779b97f4a7c15);
	struct lw_hint_place *place = &hints->places[mixed >> (64 - LW_HINT_PLACE_BITS)];

	/* inlined copies and loops share no address, but code may be unloaded and other come */
	if (LW_UNLIKELY(place->pc != site->pc || place->line != site->line || place->file != site->file ||
			place->generation != lw_load(&lw_hot.generation)))
		fill_place(place, site);
	return place;
}

/* ---- whose site is it? ---- */

static bool is_in_libc(uintptr_t pc)
{
	static uintptr_t start, end;
	struct dl_find_object libc;

	if (!lw_load_acquire(&end) && !_dl_find_object((void *)(uintptr_t)gnu_get_libc_version, &libc)) {
		lw_store(&start, (uintptr_t)libc.dlfo_map_start);
		lw_store_release(&end, (uintptr_t)libc.dlfo_map_end);
	}
	return pc >= lw_load(&start) && pc < lw_load_acquire(&end);
}

/* May a site of this sort announce a hook of this kind? A class's own operators may call others. */
static bool fits(enum lw_hint_for what, enum lw_kind kind)
{
	switch (kind) {
	case LW_KIND_NEW:
	case LW_KIND_NEW_ARRAY:
		return what == LW_HINT_NEW;
	case LW_KIND_FREE:
		return what == LW_HINT_FREE || what == LW_HINT_DELETE;
	case LW_KIND_DELETE:
	case LW_KIND_DELETE_ARRAY:
		return what == LW_HINT_DELETE;
	case LW_KIND_REALLOC_FREE:
		return what == LW_HINT_ALLOC;
	case LW_KIND_MALLOC:
		return what == LW_HINT_ALLOC || what == LW_HINT_COPY || what == LW_HINT_NEW;
	default:
		return what == LW_HINT_ALLOC;
	}
}

/* The frame that the function which called the hook was called from, if its rule says and it may be the site's. */
static bool step_out(const struct lw_pending *site, const struct lw_frame *frame, struct lw_frame *caller)
{
	uint32_t rule = lw_rules_find(frame->pc);
	uintptr_t cfa;

	if (lw_rule_type(rule) == LW_RULE_SP)
		cfa = frame->sp + 8 * (uintptr_t)lw_rule_cfa(rule);
	else if (lw_rule_type(rule) == LW_RULE_FP)
		cfa = frame->fp + 8 * (uintptr_t)lw_rule_cfa(rule);
	else
		return false;
	if (cfa <= frame->sp || cfa > site->frame + 16)
		return false;
	*caller = (struct lw_frame){ .pc = ((const uintptr_t *)cfa)[-1], .sp = cfa, .fp = frame->fp };
	if (lw_rule_fp(rule))
		caller->fp = ((const uintptr_t *)cfa)[-(intptr_t)lw_rule_fp(rule)];
	return true;
}

static bool is_ours(uintptr_t address)
{
	struct dl_find_object ours;

	return !_dl_find_object((void *)(uintptr_t)&own_code_mark, &ours) &&
	       address >= (uintptr_t)ours.dlfo_map_start && address < (uintptr_t)ours.dlfo_map_end;
}

/* Does the call before pc name a hook? One through a pointer does not say, and may. */
static bool is_direct(struct lw_hint_place *place, uintptr_t pc)
{
	uintptr_t target;

	if (place->direct_pc == pc)
		return true;
	target = lw_code_call_target(pc);
	if (target && !is_ours(target))
		return false;
	place->direct_pc = pc;
	return true;
}

/*
 * Is this the frame that pushed the site? Or the one that called it, when its last act was to jump?
 * That is known only if the call there names it.
 */
static bool is_from(const struct lw_pending *site, const struct lw_hint_place *place,
		const struct lw_frame *frame, bool *has_left)
{
	*has_left = site->frame == frame->sp - 16 && lw_code_call_target(frame->pc) == place->start;
	return *has_left || (site->frame == frame->fp && frame->pc > place->start && frame->pc <= place->end);
}

/* Through one function on the way: libc's that copies a string, or the deleting destructor. */
static bool belongs_behind(const struct lw_pending *site, const struct lw_hint_place *place,
		enum lw_hint_for what, const struct lw_frame *frame)
{
	struct lw_frame caller;
	bool has_left;

	if (!(what == LW_HINT_COPY ? is_in_libc(frame->pc)
				   : what == LW_HINT_DELETE && lw_code_ends_after(frame->pc)))
		return false;
	if (!step_out(site, frame, &caller) || !is_from(site, place, &caller, &has_left))
		return false;
	/* called through the class's table, the release is the destructor's last act */
	return what == LW_HINT_COPY || (!has_left && lw_code_calls_indirectly(caller.pc));
}

/* Does the call that led to this hook stand where the site was pushed? The hint is its answer, 0: no. */
static uint32_t belongs(struct lw_hints *hints, const struct lw_pending *site, enum lw_kind kind,
		const struct lw_frame *frame)
{
	enum lw_hint_for what = (enum lw_hint_for)(site->what & LW_PENDING_FOR);
	struct lw_hint_place *place;
	bool has_left;

	if (!fits(what, kind) || site->frame + 16 < frame->sp)
		return 0;
	place = find_place(hints, site);
	if (what != LW_HINT_COPY && is_from(site, place, frame, &has_left)) {
		if (!has_left && !is_direct(place, frame->pc))
			return 0;
		*lw_hint_match_at(hints, frame->pc) =
				(struct lw_hint_match){ frame->pc, site->pc };
		return place->hint;
	}
	return belongs_behind(site, place, what, frame) ? place->hint : 0;
}

/* Sites of frames that are gone. */
static void drop_dead(struct lw_thread *thread, uintptr_t sp)
{
	while (lw_hint_is_pending(thread) && thread->next_site[-1].frame < sp &&
			sp - thread->next_site[-1].frame < SAME_STACK_BYTES)
		thread->next_site--;
}

/* The newest site that belongs here, first among those not used yet; NULL: none. */
static struct lw_pending *find_pending(struct lw_thread *thread, enum lw_kind kind,
		const struct lw_frame *frame, uint32_t *hint)
{
	for (int taken = 0; taken < 2; taken++) {
		for (struct lw_pending *site = thread->next_site; site-- > thread->sites;) {
			if (!(site->what & LW_PENDING_TAKEN) != !taken)
				continue;
			*hint = belongs(thread->hints, site, kind, frame);
			if (*hint)
				return site;
		}
	}
	return NULL;
}

uint32_t lw_hint_search(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame, bool keep)
{
	struct lw_pending *site;
	uint32_t hint;

	drop_dead(thread, frame->sp - 16); /* one that has left by a jump is not gone */
	site = find_pending(thread, kind, frame, &hint);
	if (!site)
		drop_dead(thread, frame->sp);
	else if (!keep)
		lw_hint_use(thread, site);
	return site ? hint : 0;
}

/* ---- pushing ---- */

struct lw_pending *lw_hint_push(struct lw_thread *thread, const struct lw_pending *site)
{
	drop_dead(thread, site->frame);
	if (thread->next_site == thread->last_site) {
		memmove(thread->sites, thread->sites + 1, (LW_MAX_PENDING - 1) * sizeof(*site));
		thread->next_site--;
	}
	*thread->next_site = *site;
	return thread->next_site++;
}

void lw_hint_pop(struct lw_thread *thread, struct lw_pending *place)
{
	if (thread->next_site > place && place >= thread->sites)
		thread->next_site = place;
}
