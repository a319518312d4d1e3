/* SPDX-License-Identifier: MIT */
/*
 * model.c - the model of one process, and what follows from the records taken together.
 *
 * Two sites may be the same place: when a plugin is unloaded and loaded again at another address,
 * its stacks have other pcs and hence other ids. They are one site to a person, so model_finish()
 * merges what has the same kind, the same hint and frame by frame the same offset in the same file
 * (path and build-id). Their counts are clamped one by one before they are added: a site that was
 * freed more often than allocated in this process released blocks of its parent, which must not
 * cancel another site's leak.
 */
#include "snapshot/model/model.h"

#include "snapshot/alloc.h"

static const char *const kind_names[LW_NR_KINDS] = {
	[LW_KIND_UNKNOWN] = "unknown",
	[LW_KIND_MALLOC] = "malloc",
	[LW_KIND_CALLOC] = "calloc",
	[LW_KIND_REALLOC] = "realloc",
	[LW_KIND_ALIGNED] = "aligned",
	[LW_KIND_NEW] = "new",
	[LW_KIND_NEW_ARRAY] = "new[]",
	[LW_KIND_FREE] = "free",
	[LW_KIND_REALLOC_FREE] = "realloc",
	[LW_KIND_DELETE] = "delete",
	[LW_KIND_DELETE_ARRAY] = "delete[]",
};

static const char *const drop_reasons[LW_NR_DROPS] = {
	[LW_DROP_SITES] = "counted without a stack (no room for more sites: max_sites)",
	[LW_DROP_BLOCKS] = "blocks not recorded (no memory for the block table)",
	[LW_DROP_REENTRANT] = "allocations not recorded (signal handler inside LeakWatch)",
	[LW_DROP_COUNTERS] = "counts lost (no room for counters)",
	[LW_DROP_MODULES] = "frames without a module (too many modules)",
	[LW_DROP_EVENTS] = "mismatches or errors not kept (too many)",
	[LW_DROP_STALE] = "stale records replaced",
	[LW_DROP_UNTRACKED] = "allocations not recorded (made while LeakWatch started)",
	[LW_DROP_HINTS] = "macros without file and line (too many)",
	[LW_DROP_MARKS] = "marks not kept (too many names)",
};

const char *model_kind_name(unsigned kind)
{
	return kind < LW_NR_KINDS ? kind_names[kind] : kind_names[LW_KIND_UNKNOWN];
}

const char *model_drop_reason(unsigned drop)
{
	return drop < LW_NR_DROPS ? drop_reasons[drop] : "of a kind this program does not know";
}

static const char *const scan_reasons[LW_NR_SCAN_WHYS] = {
	[LW_SCAN_WHY_NONE] = "for no known reason",
	[LW_SCAN_WHY_MEMORY] = "there is not enough free memory",
	[LW_SCAN_WHY_CLONE] = "the kernel refused a snapshot process",
	[LW_SCAN_WHY_PROC] = "/proc/self/maps cannot be read",
	[LW_SCAN_WHY_TIME] = "the time limit was reached",
	[LW_SCAN_WHY_CRASH] = "the scanner died",
	[LW_SCAN_WHY_OFF] = "it was switched off (scan=never or sample)",
};

const char *model_scan_reason(unsigned why)
{
	return scan_reasons[why < LW_NR_SCAN_WHYS ? why : LW_SCAN_WHY_NONE];
}

bool model_is_scanned(const struct model *model)
{
	return model->has_scan && model->scan.state == LW_SCAN_DONE;
}

const char *model_text(const struct model *model, unsigned what)
{
	return what < MODEL_TEXTS && model->texts[what] ? model->texts[what] : "";
}

struct model *model_new(void)
{
	return alloc_array(1, sizeof(struct model));
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < MODEL_TEXTS; i++)
		free(model->texts[i]);
	for (size_t i = 0; i < model->nr_modules; i++)
		free(model->modules[i].path);
	free(model->modules);
	for (size_t i = 0; i < model->nr_sites; i++) {
		free(model->sites[i].hint_file);
		free(model->sites[i].pcs);
		free(model->sites[i].history);
	}
	free(model->sites);
	free(model->index);
	free(model->events);
	free(model->chains);
	for (size_t i = 0; i < model->nr_marks; i++)
		free(model->marks[i].name);
	free(model->marks);
	free(model);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Where id is, or would be, in the index. */
static size_t slot_of(const struct model *model, uint32_t id)
{
	size_t slot = mix(0, id) & (model->max_index - 1);

	while (model->index[slot] && model->sites[model->index[slot] - 1].id != id)
		slot = (slot + 1) & (model->max_index - 1);
	return slot;
}

static void grow_index(struct model *model)
{
	free(model->index);
	model->max_index = model->max_index ? model->max_index * 2 : 1024;
	model->index = alloc_array(model->max_index, sizeof(*model->index));
	for (size_t i = 0; i < model->nr_sites; i++)
		model->index[slot_of(model, model->sites[i].id)] = (uint32_t)i + 1;
}

uint32_t model_find_site(const struct model *model, uint32_t id)
{
	uint32_t found = model->max_index ? model->index[slot_of(model, id)] : 0;

	return found ? found - 1 : MODEL_NO_SITE;
}

struct model_site *model_intern_site(struct model *model, uint32_t id)
{
	uint32_t found = model_find_site(model, id);

	if (found != MODEL_NO_SITE)
		return &model->sites[found];
	if (model->nr_sites >= MODEL_MAX_SITES)
		return NULL;
	if (model->nr_sites * 2 >= model->max_index)
		grow_index(model);
	model->sites =
		alloc_grow(model->sites, model->nr_sites, &model->max_sites, sizeof(*model->sites));
	model->sites[model->nr_sites] = (struct model_site){.id = id, .oldest_ms = UINT32_MAX};
	model->index[slot_of(model, id)] = (uint32_t)++model->nr_sites;
	return &model->sites[model->nr_sites - 1];
}

struct model_event *model_add_event(struct model *model)
{
	if (model->nr_events >= MODEL_MAX_EVENTS)
		return NULL;
	model->events = alloc_grow(
		model->events, model->nr_events, &model->max_events, sizeof(*model->events));
	model->events[model->nr_events] = (struct model_event){0};
	return &model->events[model->nr_events++];
}

struct model_mark *model_intern_mark(struct model *model, char *name)
{
	for (size_t i = 0; i < model->nr_marks; i++) {
		if (strcmp(model->marks[i].name, name))
			continue;
		free(name);
		return &model->marks[i];
	}
	if (model->nr_marks >= MODEL_MAX_MARKS) {
		free(name);
		return NULL;
	}
	model->marks =
		alloc_grow(model->marks, model->nr_marks, &model->max_marks, sizeof(*model->marks));
	model->marks[model->nr_marks] = (struct model_mark){.name = name};
	return &model->marks[model->nr_marks++];
}

/* Most processes have tens, and numbers come in order. */
struct model_module *model_intern_module(struct model *model, uint32_t module)
{
	size_t nr = model->nr_modules, room = nr ? nr : 16;

	while (room <= module)
		room *= 2;
	if (room > nr) {
		model->modules = alloc_check(reallocarray(model->modules, room, sizeof(*model->modules)));
		memset(model->modules + nr, 0, (room - nr) * sizeof(*model->modules));
		model->nr_modules = room;
	}
	return &model->modules[module];
}

const struct model_module *model_module(const struct model *model, uint16_t module)
{
	if (module >= model->nr_modules || !model->modules[module].is_known)
		return NULL;
	return &model->modules[module];
}

uint64_t model_offset(const struct model *model, uint64_t pc, uint16_t module)
{
	const struct model_module *found = model_module(model, module);

	return found ? pc - found->base : pc;
}

static bool same_file(const struct model_module *a, const struct model_module *b)
{
	return a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

/* Quadratic in the modules that were ever loaded, of which there are tens, and at most 2048. */
void model_match_modules(struct model *model)
{
	for (uint16_t i = 0; i < model->nr_modules; i++) {
		model->modules[i].same_as = i;
		for (uint16_t j = 0; model->modules[i].is_known && j < i; j++) {
			if (!model->modules[j].is_known ||
				!same_file(&model->modules[i], &model->modules[j]))
				continue;
			model->modules[i].same_as = j;
			break;
		}
	}
}

static uint16_t file_of(const struct model *model, uint16_t module)
{
	return model_module(model, module) ? model->modules[module].same_as : LW_NO_MODULE;
}

static uint64_t site_hash(const struct model *model, const struct model_site *site)
{
	uint64_t hash = mix(site->kind, site->hint_line);

	for (uint16_t i = 0; i < site->nr_frames; i++) {
		hash = mix(hash, model_offset(model, site->pcs[i], site->modules[i]));
		hash = mix(hash, file_of(model, site->modules[i]));
	}
	return hash;
}

static bool same_place(
	const struct model *model, const struct model_site *a, const struct model_site *b)
{
	if (a->kind != b->kind || a->nr_frames != b->nr_frames)
		return false;
	if ((a->flags ^ b->flags) & (LW_SITE_EXACT_PC | LW_SITE_IGNORED))
		return false;
	if (a->hint_line != b->hint_line || !a->hint_file != !b->hint_file ||
		(a->hint_file && strcmp(a->hint_file, b->hint_file)))
		return false;
	for (uint16_t i = 0; i < a->nr_frames; i++)
		if (file_of(model, a->modules[i]) != file_of(model, b->modules[i]) ||
			model_offset(model, a->pcs[i], a->modules[i]) !=
				model_offset(model, b->pcs[i], b->modules[i]))
			return false;
	return true;
}

void model_count_live(struct model_site *site)
{
	const struct lw_count *count = &site->count;
	int64_t bytes = (int64_t)(count->alloc_bytes - count->freed_bytes);
	int64_t blocks = (int64_t)(count->alloc_blocks - count->freed_blocks);

	/* fewer than none: blocks of the parent process were released here */
	site->live_blocks = blocks > 0 ? (uint64_t)blocks : 0;
	site->live_bytes = blocks > 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/*
 * One place's past is the sum of its sites': the samples of a process are of the same moments, but for those of a
 * watch, where a site that came later has others. Between two it held what it held at the first.
 */
static void merge_history(struct model_site *to, const struct model_site *from)
{
	struct model_history *sum = to->history, *more = from->history;
	uint32_t nr = more ? more->nr_samples : 0;
	size_t bytes = sizeof(*more) + nr * sizeof(more->samples[0]);

	if (!more)
		return;
	if (!sum) {
		to->history = alloc_array(1, bytes);
		memcpy(to->history, more, bytes);
		to->history->max_samples = nr;
		return;
	}
	for (uint32_t i = 0, j = 0; i < sum->nr_samples; i++) {
		while (j < nr && more->samples[j].ms <= sum->samples[i].ms)
			j++;
		if (j)
			sum->samples[i].bytes += more->samples[j - 1].bytes;
	}
	sum->held_bytes += more->held_bytes;
	sum->held_blocks += more->held_blocks;
}

/* Before the live counts are added: a side without a history has always held what it holds. */
static void merge_past(struct model_site *to, const struct model_site *from)
{
	uint64_t to_bytes = to->live_bytes, to_blocks = to->live_blocks;
	bool was_steady = !to->history;
	struct model_history *sum;

	merge_history(to, from);
	sum = to->history;
	if (!sum || (!was_steady && from->history))
		return;
	if (!was_steady) {
		to_bytes = from->live_bytes;
		to_blocks = from->live_blocks;
	}
	for (uint32_t i = 0; i < sum->nr_samples; i++)
		sum->samples[i].bytes += to_bytes;
	sum->held_bytes += to_bytes;
	sum->held_blocks += to_blocks;
}

static void merge_into(struct model_site *to, const struct model_site *from)
{
	merge_past(to, from);
	to->live_bytes += from->live_bytes;
	to->live_blocks += from->live_blocks;
	to->scan.lost_bytes += from->scan.lost_bytes;
	to->scan.lost_blocks += from->scan.lost_blocks;
	to->scan.indirect_bytes += from->scan.indirect_bytes;
	to->scan.indirect_blocks += from->scan.indirect_blocks;
	to->scan.dragged_bytes += from->scan.dragged_bytes;
	to->scan.dragged_blocks += from->scan.dragged_blocks;
	to->count.alloc_bytes += from->count.alloc_bytes;
	to->count.alloc_blocks += from->count.alloc_blocks;
	to->count.freed_bytes += from->count.freed_bytes;
	to->count.freed_blocks += from->count.freed_blocks;
	if (from->first_ms < to->first_ms)
		to->first_ms = from->first_ms;
	if (from->oldest_ms < to->oldest_ms)
		to->oldest_ms = from->oldest_ms;
}

/* A site without frames stays alone: nothing says that two of them are the same. */
static void merge_sites(struct model *model)
{
	size_t max = 16;
	uint32_t *table;

	while (max < model->nr_sites * 2)
		max *= 2;
	table = alloc_array(max, sizeof(*table));
	for (size_t i = 0; i < model->nr_sites; i++) {
		struct model_site *site = &model->sites[i];
		size_t slot = site_hash(model, site) & (max - 1);

		site->merged = (uint32_t)i;
		model_count_live(site);
		if (!site->nr_frames)
			continue;
		while (table[slot] && !same_place(model, &model->sites[table[slot] - 1], site))
			slot = (slot + 1) & (max - 1);
		if (table[slot]) {
			site->merged = table[slot] - 1;
			merge_into(&model->sites[site->merged], site);
		} else {
			table[slot] = (uint32_t)i + 1;
		}
	}
	free(table);
}

static uint32_t place_of(const struct model *model, uint32_t id)
{
	uint32_t found = model_find_site(model, id);

	return found == MODEL_NO_SITE ? MODEL_NO_SITE : model->sites[found].merged;
}

void model_finish(struct model *model)
{
	model_match_modules(model);
	merge_sites(model);
	for (size_t i = 0; i < model->nr_events; i++) {
		struct model_event *event = &model->events[i];

		event->alloc_site = place_of(model, event->alloc_site);
		event->free_site = place_of(model, event->free_site);
	}
}

bool model_is_held(const struct model *model, size_t site)
{
	return model->sites[site].merged == site && model->sites[site].live_blocks > 0;
}
