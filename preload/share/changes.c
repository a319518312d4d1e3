/* SPDX-License-Identifier: MIT */
/* changes.c - telling only what changed; see changes.h. */
#include "preload/share/changes.h"

#include <string.h>

#include "preload/base/base.h"

bool lw_changes_open(struct lw_changes *changes, const struct lw_region_header *region,
	uint64_t region_bytes, uint64_t *seen, uint32_t max_seen, lw_emit_sink_fn *sink, void *context)
{
	changes->seen = seen;
	changes->max_seen = max_seen;
	changes->inverted_oldest = NULL;
	changes->nr_modules = changes->nr_unloaded = 0;
	changes->is_greeted = false;
	memset(changes->seen_events, 0, sizeof(changes->seen_events));
	memset(changes->seen_marks, 0, sizeof(changes->seen_marks));
	return lw_dump_open(&changes->dump, region, region_bytes, sink, context);
}

void lw_changes_reset(struct lw_changes *changes)
{
	changes->nr_modules = changes->nr_unloaded = 0;
	changes->is_greeted = false;
	memset(changes->seen_events, 0, sizeof(changes->seen_events));
	memset(changes->seen_marks, 0, sizeof(changes->seen_marks));
	/* only as far as it was written: the rest is pages that do not exist */
	memset(changes->seen, 0,
		(changes->dump.nr_sites < changes->max_seen ? changes->dump.nr_sites : changes->max_seen) *
			sizeof(changes->seen[0]));
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	digest = (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return digest ^ digest >> 29;
}

static uint64_t digest_of(const struct lw_count *count, uint32_t oldest_ms)
{
	uint64_t digest = mix(mix(count->alloc_bytes, count->alloc_blocks), oldest_ms);

	return mix(mix(digest, count->freed_bytes), count->freed_blocks) | 1;
}

static uint32_t oldest_of(const struct lw_changes *changes, uint32_t id)
{
	if (changes->inverted_oldest && id < changes->max_seen)
		return ~lw_load(&changes->inverted_oldest[id]);
	return lw_dump_oldest(&changes->dump, id);
}

static bool tell_site(struct lw_changes *changes, uint32_t id, const struct lw_count *count)
{
	uint64_t *seen = id < changes->max_seen ? &changes->seen[id] : NULL;
	uint32_t oldest_ms = oldest_of(changes, id);
	uint64_t digest = digest_of(count, oldest_ms);

	if (seen && *seen == digest)
		return true;
	if ((!seen || !*seen) && !(lw_dump_site(&changes->dump, id) && lw_dump_history(&changes->dump, id, count)))
		return false;
	if (!lw_dump_count(&changes->dump, id, count, oldest_ms))
		return false;
	if (seen)
		*seen = digest;
	return true;
}

static bool tell_sites(struct lw_changes *changes)
{
	struct lw_count sums[LW_DUMP_STRETCH];
	uint32_t nr_sites = changes->dump.nr_sites;

	for (uint32_t first = 0; first < nr_sites; first += LW_DUMP_STRETCH) {
		uint32_t nr = nr_sites - first < LW_DUMP_STRETCH ? nr_sites - first : LW_DUMP_STRETCH;

		lw_dump_sum(&changes->dump, first, nr, sums);
		for (uint32_t i = 0; i < nr; i++) {
			if (!sums[i].alloc_blocks && !sums[i].freed_blocks)
				continue;
			if (!tell_site(changes, first + i, &sums[i]))
				return false;
		}
	}
	return true;
}

static bool tell_modules(struct lw_changes *changes)
{
	struct dump *d = &changes->dump;
	const struct lw_module *modules =
		(const struct lw_module *)(const void *)((const char *)d->region + d->modules.off);
	uint32_t nr_unloaded = 0;

	/* lw_region_check: the area lies in the region, its stride is at least an entry's */
	for (uint32_t i = 0; i < d->nr_modules; i++) {
		const void *module = (const char *)modules + (uint64_t)i * d->modules.stride;

		nr_unloaded += lw_load(&((const struct lw_module *)module)->is_unloaded) != 0;
	}
	if (nr_unloaded != changes->nr_unloaded)
		changes->nr_modules = 0;
	if (changes->nr_modules < d->nr_modules && !lw_dump_modules(d, changes->nr_modules))
		return false;
	changes->nr_unloaded = nr_unloaded;
	changes->nr_modules = d->nr_modules;
	return true;
}

/* The stack a release of an event names: counted sites are told by their counts. */
static bool tell_stack(struct lw_changes *changes, uint32_t id)
{
	struct lw_count count;

	if (id >= changes->dump.nr_sites)
		return true;
	lw_dump_sum(&changes->dump, id, 1, &count);
	return tell_site(changes, id, &count);
}

static bool tell_event(struct lw_changes *changes, uint32_t index)
{
	struct lw_event event;

	if (!lw_dump_read_event(&changes->dump, index, &event))
		return true;
	if (index < LW_MAX_EVENTS && changes->seen_events[index] == event.count)
		return true;
	if (!tell_stack(changes, event.alloc_site) || !tell_stack(changes, event.free_site) ||
		!lw_dump_event(&changes->dump, &event))
		return false;
	if (index < LW_MAX_EVENTS)
		changes->seen_events[index] = event.count;
	return true;
}

static bool tell_mark(struct lw_changes *changes, uint32_t index)
{
	uint64_t count = lw_dump_mark_count(&changes->dump, index);

	if (changes->seen_marks[index] == count)
		return true;
	if (!lw_dump_mark(&changes->dump, index))
		return false;
	changes->seen_marks[index] = count;
	return true;
}

bool lw_changes_events(struct lw_changes *changes)
{
	lw_dump_refresh(&changes->dump);
	if (!tell_modules(changes))
		return false;
	for (uint32_t i = 0; i < changes->dump.nr_events; i++)
		if (!tell_event(changes, i))
			return false;
	for (uint32_t i = 0; i < changes->dump.nr_marks && i < LW_MAX_MARKS; i++)
		if (!tell_mark(changes, i))
			return false;
	return true;
}

bool lw_changes_has_events(struct lw_changes *changes)
{
	struct lw_event event;

	if (!changes->is_greeted)
		return false;
	lw_dump_refresh(&changes->dump);
	for (uint32_t i = 0; i < changes->dump.nr_events && i < LW_MAX_EVENTS; i++)
		if (!changes->seen_events[i] && lw_dump_read_event(&changes->dump, i, &event) && event.count)
			return true;
	for (uint32_t i = 0; i < changes->dump.nr_marks && i < LW_MAX_MARKS; i++)
		if (!changes->seen_marks[i] && lw_dump_mark_count(&changes->dump, i))
			return true;
	return false;
}

bool lw_changes_tick(struct lw_changes *changes, uint64_t now_mono_ns)
{
	struct dump *d = &changes->dump;

	lw_dump_refresh(d);
	if (!lw_dump_hello(d, now_mono_ns))
		return false;
	if (!changes->is_greeted && !lw_dump_texts(d))
		return false;
	changes->is_greeted = true;
	return tell_modules(changes) && tell_sites(changes) && lw_changes_events(changes) &&
	       lw_dump_totals(d);
}
