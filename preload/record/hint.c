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
	if (!lw_cfi_function(site->pc - 1, &found.start, &found.end))
		found.start = found.end = site->pc;
	found.hint = intern(site->file, site->line);
	*place = found;
}

static struct lw_hint_place *find_place(struct lw_hints *hints, const struct lw_pending *site)
{
	uint64_t mixed = site->pc * UINT64_C(0x9e3779b97f4a7c15);
	struct lw_hint_place *place = &hints->places[mixed >> (64 - LW_HINT_PLACE_BITS)];

	/* inlined copies and loops share no return address, but code may be unloaded and other come */
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

/* Where the function that called the hook was called from, if that is the frame at sp; 0 if not. */
static uintptr_t caller_in(const struct lw_frame *frame, uintptr_t sp)
{
	uint32_t rule = lw_rules_find(frame->pc);
	uintptr_t cfa;

	if (lw_rule_type(rule) == LW_RULE_SP)
		cfa = frame->sp + 8 * (uintptr_t)lw_rule_cfa(rule);
	else if (lw_rule_type(rule) == LW_RULE_FP)
		cfa = frame->fp + 8 * (uintptr_t)lw_rule_cfa(rule);
	else
		return 0;
	return cfa == sp ? ((const uintptr_t *)cfa)[-1] : 0;
}

static bool is_in(uintptr_t pc, const struct lw_hint_place *place)
{
	return pc > place->start && pc <= place->end;
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

/* Does the call that led to this hook stand where the site was pushed? */
static bool belongs(struct lw_hints *hints, const struct lw_pending *site, enum lw_kind kind,
		const struct lw_frame *frame, uint32_t *hint)
{
	struct lw_hint_place *place;
	uintptr_t pc = 0;
	bool is_own_call = false;
	enum lw_hint_for what = (enum lw_hint_for)(site->what & LW_PENDING_FOR);

	if (!fits(what, kind))
		return false;
	if (what == LW_HINT_COPY) {
		if (frame->sp < site->sp && is_in_libc(frame->pc))
			pc = caller_in(frame, site->sp);
	} else if (frame->sp == site->sp) {
		pc = frame->pc;
		is_own_call = true;
	} else if (what == LW_HINT_DELETE && frame->sp < site->sp && lw_code_ends_after(frame->pc)) {
		/* the deleting destructor: called through the class's table, the release is its last act */
		pc = caller_in(frame, site->sp);
		if (pc && !lw_code_calls_indirectly(pc))
			pc = 0;
	}
	if (!pc)
		return false;
	place = find_place(hints, site);
	*hint = place->hint;
	return is_in(pc, place) && (!is_own_call || is_direct(place, pc));
}

static void drop_dead(struct lw_hints *hints, uintptr_t sp)
{
	while (hints->nr && hints->pending[hints->nr - 1].sp < sp &&
			sp - hints->pending[hints->nr - 1].sp < SAME_STACK_BYTES)
		hints->nr--;
}

/* The newest site that belongs here, first among those not used yet; -1: none. */
static int find_pending(struct lw_hints *hints, enum lw_kind kind, const struct lw_frame *frame,
		uint32_t *hint)
{
	for (int taken = 0; taken < 2; taken++) {
		for (int i = (int)hints->nr - 1; i >= 0; i--) {
			if (!(hints->pending[i].what & LW_PENDING_TAKEN) == !taken &&
					belongs(hints, &hints->pending[i], kind, frame, hint))
				return i;
		}
	}
	return -1;
}

/* Remembers a call that was found to be the announced one; only those from the pushing frame itself. */
static void keep_match(struct lw_hints *hints, const struct lw_pending *site, enum lw_kind kind,
		const struct lw_frame *frame, uint32_t hint)
{
	if (site->sp != frame->sp)
		return;
	*lw_hint_match_at(hints, frame->pc) = (struct lw_hint_match){
		.call = lw_hint_call(kind, frame->pc),
		.tag = site->tag,
		.generation = find_place(hints, site)->generation,
		.hint = hint,
	};
}

uint32_t lw_hint_search(struct lw_thread *thread, enum lw_kind kind, const struct lw_frame *frame, bool keep)
{
	struct lw_hints *hints = thread->hints;
	struct lw_pending *site;
	uint32_t hint = 0;
	int at;

	drop_dead(hints, frame->sp);
	at = find_pending(hints, kind, frame, &hint);
	if (at < 0)
		return 0;
	site = &hints->pending[at];
	keep_match(hints, site, kind, frame, hint);
	if (!keep && lw_pending_stays(site))
		site->what |= LW_PENDING_TAKEN;
	else if (!keep)
		hints->nr = (uint32_t)at;
	return hint;
}

/* ---- pushing ---- */

void lw_hint_make_room(struct lw_hints *hints, uintptr_t sp)
{
	drop_dead(hints, sp);
	if (hints->nr < LW_MAX_PENDING)
		return;
	memmove(hints->pending, hints->pending + 1, (LW_MAX_PENDING - 1) * sizeof(hints->pending[0]));
	hints->nr--;
}

void lw_hint_pop(struct lw_thread *thread, uint32_t number)
{
	if (thread->hints && thread->hints->nr >= number)
		thread->hints->nr = number - 1;
}
