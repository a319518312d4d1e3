/* SPDX-License-Identifier: MIT */
/* sites.c - the index of sites; see sites.h. */
#include "preload/record/sites.h"

#include <string.h>

#include "preload/base/hot.h"
#include "preload/base/mem.h"
#include "preload/record/blocks.h"
#include "preload/unwind/modules.h"

enum { FIRST_INDEX_BITS = 8 };

struct index {
	uint32_t bits;
	uint32_t reserved;
	uint64_t entries[]; /* 0 empty; upper half of the hash | where in the pool the stack is */
};

/*
 * Stands before each stack in the pool: all that a look-up compares lies together, and the site's record, which
 * would be one more miss of the cache, is not read.
 */
struct head {
	uint64_t hash;
	uint32_t key;
	uint32_t what; /* id | dead | frames */
};

enum {
	HEAD_UNITS = sizeof(struct head) / sizeof(uint64_t),
	HEAD_DEAD = 1 << LW_BLOCK_SITE_BITS,
	HEAD_FRAMES_AT = LW_BLOCK_SITE_BITS + 1,
};
_Static_assert(LW_MAX_FRAMES < 1 << (32 - HEAD_FRAMES_AT), "a stack's length fits");

/* Release when published, acquire when read: the entries and the sites they name are complete. */
static struct index *current;

static struct index *new_index(uint32_t bits)
{
	struct index *index = lw_mem_map(sizeof(*index) + (sizeof(uint64_t) << bits), "leakwatch sites");

	if (index)
		index->bits = bits;
	return index;
}

bool lw_sites_init(void)
{
	current = new_index(FIRST_INDEX_BITS);
	return current != NULL;
}

__extension__ typedef unsigned __int128 wide;

static uint64_t mix(uint64_t a, uint64_t b)
{
	wide product = (wide)(a ^ UINT64_C(0x2d358dccaa6c78a5)) *
				    (b ^ UINT64_C(0x8bb84b93962eacc9));

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Two lanes, so that the multiplications of neighbouring frames overlap. */
static uint64_t hash_stack(const struct lw_stack *stack, uint32_t key)
{
	uint64_t a = (uint64_t)stack->is_truncated << 39 | stack->nr, b = key;
	uint32_t i = 0;

	for (; i + 4 <= stack->nr; i += 4) {
		a = mix(a ^ stack->pcs[i], stack->pcs[i + 1]);
		b = mix(b ^ stack->pcs[i + 2], stack->pcs[i + 3]);
	}
	for (; i < stack->nr; i++)
		a = mix(a ^ stack->pcs[i], i);
	return mix(a, b);
}

static struct head *head_of(uint32_t stack_off)
{
	return lw_box_pool(stack_off - HEAD_UNITS);
}

static bool is_site(const struct head *head, uint64_t hash, const struct lw_stack *stack, uint32_t key)
{
	uint32_t what = lw_load(&head->what);

	return head->hash == hash && what >> HEAD_FRAMES_AT == stack->nr && head->key == key && !(what & HEAD_DEAD) &&
	       !memcmp(head + 1, stack->pcs, stack->nr * sizeof(stack->pcs[0]));
}

static bool has_modules(const struct head *head, const struct lw_stack *stack)
{
	const uint16_t *modules = (const uint16_t *)((const uint64_t *)(head + 1) + stack->nr);

	return !memcmp(modules, stack->modules, stack->nr * sizeof(modules[0]));
}

/* is_unsure: code is being unmapped, so equal PCs may be other code: modules must be equal too. */
static struct lw_site_found look_up(const struct index *index, uint64_t hash, const struct lw_stack *stack,
		uint32_t key, bool is_unsure)
{
	uint64_t mask = (UINT64_C(1) << index->bits) - 1;

	for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
		uint64_t entry = lw_load_acquire(&index->entries[at]);
		const struct head *head;

		if (!entry)
			return (struct lw_site_found){ 0, NULL };
		if (entry >> 32 != hash >> 32)
			continue;
		head = head_of((uint32_t)entry);
		if (is_site(head, hash, stack, key) && (!is_unsure || has_modules(head, stack)))
			return (struct lw_site_found){ lw_load(&head->what) & (HEAD_DEAD - 1), (const uint64_t *)(head + 1) };
	}
}

static void insert(struct index *index, uint64_t hash, uint32_t stack_off)
{
	uint64_t mask = (UINT64_C(1) << index->bits) - 1, at = hash & mask;

	while (index->entries[at])
		at = (at + 1) & mask;
	lw_store_release(&index->entries[at], hash >> 32 << 32 | stack_off);
}

static bool grow_locked(void) LW_HOLDS(lw_sites_lock)
{
	struct index *old = current, *bigger;

	if (lw_own.nr_sites < 3u << (old->bits - 2))
		return true;
	bigger = new_index(old->bits + 1);
	if (!bigger) /* a full table would make look-ups endless: keep an eighth free */
		return lw_own.nr_sites < (1u << old->bits) - (1u << (old->bits - 3));
	for (uint32_t id = 1; id < lw_own.nr_sites; id++)
		insert(bigger, lw_box_site(id)->hash, lw_box_site(id)->stack_off);
	lw_store_release(&current, bigger);
	return true;
}

static struct lw_site_found add_locked(const struct lw_stack *stack, uint64_t hash, uint32_t key)
		LW_HOLDS(lw_sites_lock)
{
	uint32_t id = lw_own.nr_sites, off;
	struct lw_site *site = lw_box_site(id);
	uint64_t *pcs;

	if (id >= lw_own.max_sites || !grow_locked())
		return (struct lw_site_found){ 0, NULL };
	off = lw_box_take_locked(sizeof(struct head) + stack->nr * (sizeof(uint64_t) + sizeof(uint16_t)));
	if (!off)
		return (struct lw_site_found){ 0, NULL };
	off += HEAD_UNITS;
	*head_of(off) = (struct head){ hash, key, id | stack->nr << HEAD_FRAMES_AT };
	pcs = lw_box_pool(off);
	memcpy(pcs, stack->pcs, stack->nr * sizeof(pcs[0]));
	memcpy(pcs + stack->nr, stack->modules, stack->nr * sizeof(stack->modules[0]));
	*site = (struct lw_site){
		.stack_off = off,
		.hint = lw_key_hint(key),
		.hash = hash,
		.first_ms = lw_box_now_ms(),
		.oldest_ms = UINT32_MAX,
		.nr_frames = (uint16_t)stack->nr,
		.kind = (uint8_t)lw_key_kind(key),
		.align_log2 = (uint8_t)lw_key_align(key),
		.flags = (uint8_t)((stack->is_truncated ? LW_SITE_TRUNCATED : 0) |
				   (key & LW_KEY_IGNORED ? LW_SITE_IGNORED : 0)),
	};
	LW_BOX_PUBLISH(nr_sites, id + 1);
	insert(current, hash, off);
	return (struct lw_site_found){ id, pcs };
}

/* Sites whose modules are all loaded (again) may be found, the others not. */
static void judge_locked(void) LW_HOLDS(lw_sites_lock)
{
	for (uint32_t id = 1; id < lw_own.nr_sites; id++) {
		struct lw_site *site = lw_box_site(id);
		struct head *head = head_of(site->stack_off);
		uint32_t nr_frames = lw_box_nr_frames(site);
		const uint16_t *modules = (const uint16_t *)(lw_sites_pcs(id) + nr_frames);
		bool is_dead = false;

		for (uint32_t i = 0; i < nr_frames && !is_dead; i++)
			is_dead = modules[i] < lw_own.nr_modules && lw_load(&lw_box_module(modules[i])->is_unloaded);
		lw_store(&site->flags, (uint8_t)(is_dead ? site->flags | LW_SITE_DEAD
							 : site->flags & ~LW_SITE_DEAD));
		lw_store(&head->what, is_dead ? head->what | HEAD_DEAD : head->what & ~(uint32_t)HEAD_DEAD);
	}
}

void lw_sites_retire(void)
{
	lw_lock_acquire(&lw_sites_lock);
	judge_locked();
	lw_lock_release(&lw_sites_lock);
}

static LW_COLD struct lw_site_found add(struct lw_stack *stack, uint64_t hash, uint32_t key)
{
	struct lw_site_found found;

	lw_modules_resolve(stack); /* asks the loader: before the lock */
	lw_lock_acquire(&lw_sites_lock);
	if (lw_modules_take_revived())
		judge_locked();
	found = look_up(current, hash, stack, key, true);
	if (!found.id)
		found = add_locked(stack, hash, key);
	lw_lock_release(&lw_sites_lock);
	if (!found.id)
		lw_box_drop(LW_DROP_SITES);
	return found;
}

struct lw_site_found lw_sites_intern(struct lw_stack *stack, uint32_t key)
{
	uint64_t hash = hash_stack(stack, key);
	struct lw_site_found found = { 0, NULL };

	if (LW_LIKELY(!lw_load_acquire(&lw_hot.unloading)))
		found = look_up(lw_load_acquire(&current), hash, stack, key, false);
	return found.id ? found : add(stack, hash, key);
}

uint32_t lw_sites_intern_ignored(uint32_t id, struct lw_stack *stack)
{
	const struct lw_site *site = lw_box_site(id);
	uint32_t key = lw_site_key((enum lw_kind)site->kind, site->align_log2, site->hint) | LW_KEY_IGNORED;

	stack->nr = lw_box_nr_frames(site);
	stack->is_truncated = lw_load(&site->flags) & LW_SITE_TRUNCATED;
	memcpy(stack->pcs, lw_sites_pcs(id), stack->nr * sizeof(stack->pcs[0]));
	return lw_sites_intern(stack, key).id;
}
