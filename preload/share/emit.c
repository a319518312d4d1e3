/* SPDX-License-Identifier: MIT */
/*
 * emit.c - reads a region and says it in wire records, once, for every transport.
 *
 * The region may be changing while it is read, and it may have been written by somebody who wants
 * us to read elsewhere. So the areas are copied once, and every single access goes through lw_dump_at(),
 * which checks index, stride and extent against that copy and against the size of the segment. What
 * does not fit is left out or cut, never trusted; texts are cut at their room, stacks at
 * LW_MAX_FRAMES, module numbers that name no module become LW_NO_MODULE.
 *
 * Counters are summed over all rows, a few sites at a time, so that each chunk is visited once for
 * a stretch of neighbours. A live target goes on counting meanwhile: each number is one that was
 * true at some moment of the dump.
 *
 * Runs inside the target too: no allocation, no libc state.
 */
#include "preload/share/emit.h"

#include <string.h>

#include "preload/base/base.h"
#include "preload/share/dump.h"

enum {
	MAX_NAME_BYTES = 4096, /* PATH_MAX: what a module path or a hint's file is cut at */
};

_Static_assert(LW_CHUNK_SITES % LW_DUMP_STRETCH == 0, "a stretch lies in one chunk");
_Static_assert(LW_NR_DROPS <= 16, "totals have room for each reason");
_Static_assert(LW_BUILD_ID_BYTES == sizeof(((struct lw_wire_module *)0)->build_id), "same length");

const void *lw_dump_at(const struct lw_region_header *region, uint64_t region_bytes,
	const struct lw_area *area, uint64_t index, uint64_t bytes)
{
	uint64_t inside = index * area->stride;

	if (index >= area->max || area->off > region_bytes || area->off % 8 || area->stride % 8)
		return NULL;
	if (inside > region_bytes - area->off || bytes > region_bytes - area->off - inside)
		return NULL;
	return (const unsigned char *)region + area->off + inside;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A NUL-terminated text at pool offset / 8; *nr_bytes without the NUL, cut at MAX_NAME_BYTES. */
static const char *pool_text(const struct dump *d, uint32_t off, size_t *nr_bytes)
{
	const char *text = lw_dump_at(d->region, d->region_bytes, &d->pool, off, 8);
	uint64_t room = text ? (uint64_t)(d->pool.max - off) * 8 : 0;
	uint64_t rest = text ? d->region_bytes - (uint64_t)(text - (const char *)d->region) : 0;

	room = room < rest ? room : rest;
	*nr_bytes = text ? strnlen(text, room < MAX_NAME_BYTES ? room : MAX_NAME_BYTES) : 0;
	return text;
}

/* Counters of sites first..first+nr (in one chunk), added up over the rows into sums. */
static void sum_counts(const struct lw_region_header *region, uint64_t region_bytes,
	const struct lw_area *rows, const struct lw_area *chunks, uint32_t nr_rows, uint32_t first,
	uint32_t nr, struct lw_count *sums)
{
	uint64_t dir_off = sizeof(struct lw_row) + (uint64_t)(first / LW_CHUNK_SITES) * 4;

	memset(sums, 0, nr * sizeof(*sums));
	for (uint32_t r = 0; r < nr_rows; r++) {
		const unsigned char *row = lw_dump_at(region, region_bytes, rows, r, dir_off + 4);
		const struct lw_count *counts;
		uint32_t chunk;

		if (!row || dir_off + 4 > rows->stride)
			return;
		chunk = lw_load_acquire((const uint32_t *)(const void *)(row + dir_off));
		if (!chunk)
			continue;
		counts = lw_dump_at(region, region_bytes, chunks, chunk, sizeof(*counts) * LW_CHUNK_SITES);
		if (!counts)
			continue;
		counts += first % LW_CHUNK_SITES;
		for (uint32_t i = 0; i < nr; i++) {
			sums[i].alloc_bytes += lw_load(&counts[i].alloc_bytes);
			sums[i].alloc_blocks += lw_load(&counts[i].alloc_blocks);
			sums[i].freed_bytes += lw_load(&counts[i].freed_bytes);
			sums[i].freed_blocks += lw_load(&counts[i].freed_blocks);
		}
	}
}

void lw_emit_counts(const struct lw_region_header *region, uint64_t region_bytes, uint32_t first,
	uint32_t nr, struct lw_count *sums)
{
	struct lw_area rows = region->rows, chunks = region->chunks;
	uint32_t nr_rows = least(lw_load_acquire(&region->nr_rows), rows.max);

	sum_counts(region, region_bytes, &rows, &chunks, nr_rows, first, nr, sums);
}

struct lw_count lw_emit_site_count(
	const struct lw_region_header *region, uint64_t region_bytes, uint32_t site)
{
	struct lw_count sum = {0};

	lw_emit_counts(region, region_bytes, site, 1, &sum);
	return sum;
}

void lw_dump_sum(const struct dump *d, uint32_t first, uint32_t nr, struct lw_count *sums)
{
	sum_counts(d->region, d->region_bytes, &d->rows, &d->chunks, d->nr_rows, first, nr, sums);
}

void *lw_dump_begin(struct dump *d, int64_t type, size_t bytes)
{
	struct lw_wire_head *head = (struct lw_wire_head *)(void *)d->record;

	memset(d->record, 0, bytes);
	head->type = type;
	head->version = LW_WIRE_VERSION;
	return d->record;
}

bool lw_dump_finish(struct dump *d, size_t bytes)
{
	struct lw_wire_head *head = (struct lw_wire_head *)(void *)d->record;
	size_t whole = LW_ALIGN_UP(bytes, (size_t)8);

	memset(d->record + bytes, 0, whole - bytes);
	head->bytes = (uint32_t)whole;
	return d->sink(d->context, head);
}

bool lw_dump_hello(struct dump *d, uint64_t now_mono_ns)
{
	const struct lw_region_header *region = d->region;
	struct lw_wire_hello *hello = lw_dump_begin(d, LW_WIRE_HELLO, sizeof(*hello));
	uint64_t ended_ns = lw_load(&region->ended_mono_ns), started_ns = region->started_mono_ns;

	hello->pid = region->pid;
	hello->ppid = region->ppid;
	hello->uid = region->uid;
	hello->flags = lw_load(&region->flags);
	hello->state = lw_load_acquire(&region->state);
	hello->end_kind = lw_load(&region->end_kind);
	hello->depth = region->depth;
	hello->exit_status = lw_load(&region->exit_status);
	hello->started_real_ns = region->started_real_ns;
	ended_ns = ended_ns ? ended_ns : now_mono_ns;
	hello->seconds_ns = ended_ns > started_ns ? ended_ns - started_ns : 0;
	hello->stderr_dev = region->stderr_dev;
	hello->stderr_ino = region->stderr_ino;
	return lw_dump_finish(d, sizeof(*hello));
}

static bool emit_text(struct dump *d, uint32_t what, const char *text, size_t nr_bytes)
{
	/* behind the TICK of a message there is room for a piece */
	const size_t piece_bytes =
		LW_WIRE_MAX - sizeof(struct lw_wire_text) - sizeof(struct lw_wire_tick);

	for (size_t off = 0; off < nr_bytes; off += piece_bytes) {
		struct lw_wire_text *record = lw_dump_begin(d, LW_WIRE_TEXT, sizeof(*record));
		size_t bytes = nr_bytes - off < piece_bytes ? nr_bytes - off : piece_bytes;

		record->what = what;
		record->offset = (uint32_t)off;
		record->total_bytes = (uint32_t)nr_bytes;
		record->nr_bytes = (uint32_t)bytes;
		memcpy(record->text, text + off, bytes);
		if (!lw_dump_finish(d, sizeof(*record) + bytes))
			return false;
	}
	return true;
}

bool lw_dump_texts(struct dump *d)
{
	const struct lw_region_header *region = d->region;
	uint32_t cmdline_bytes = least(region->cmdline_bytes, LW_CMDLINE_BYTES);

	return emit_text(d, LW_TEXT_EXE, region->exe, strnlen(region->exe, LW_EXE_BYTES)) &&
	       emit_text(d, LW_TEXT_CMDLINE, region->cmdline, cmdline_bytes) &&
	       emit_text(d, LW_TEXT_OPTIONS, region->options,
		       strnlen(region->options, LW_OPTIONS_BYTES)) &&
	       emit_text(d, LW_TEXT_SUPPRESSIONS, region->suppressions,
		       strnlen(region->suppressions, LW_SUPPRESSIONS_BYTES));
}

bool lw_dump_modules(struct dump *d, uint32_t first)
{
	for (uint32_t i = first; i < d->nr_modules; i++) {
		const struct lw_module *module =
			lw_dump_at(d->region, d->region_bytes, &d->modules, i, sizeof(*module));
		struct lw_wire_module *record = lw_dump_begin(d, LW_WIRE_MODULE, sizeof(*record));
		const char *path;
		size_t path_bytes;

		if (!module)
			break;
		path = pool_text(d, lw_load(&module->path_off), &path_bytes);
		record->base = module->base;
		record->start = module->start;
		record->end = module->end;
		record->id = i;
		record->path_bytes = (uint16_t)path_bytes;
		record->build_id_bytes = (uint8_t)least(module->build_id_bytes, LW_BUILD_ID_BYTES);
		record->is_unloaded = lw_load(&module->is_unloaded) != 0;
		memcpy(record->build_id, module->build_id, record->build_id_bytes);
		if (path)
			memcpy(record->path, path, path_bytes);
		d->sent.nr_modules++;
		if (!lw_dump_finish(d, sizeof(*record) + path_bytes))
			return false;
	}
	return true;
}

/* Frames of a site into the record; how many there are room and memory for. */
static uint16_t copy_stack(struct dump *d, const struct lw_site *site, struct lw_wire_site *record)
{
	uint16_t nr_frames = (uint16_t)least(site->nr_frames, LW_MAX_FRAMES);
	const uint64_t *stack =
		lw_dump_at(d->region, d->region_bytes, &d->pool, site->stack_off, (uint64_t)nr_frames * 10);
	unsigned char *modules = (unsigned char *)(record->pc + nr_frames);
	uint64_t stack_units = ((uint64_t)nr_frames * 10 + 7) / 8;

	if (!stack || site->stack_off + stack_units > d->pool.max)
		return 0;
	memcpy(record->pc, stack, nr_frames * sizeof(uint64_t));
	for (uint16_t i = 0; i < nr_frames; i++) {
		uint16_t module = ((const uint16_t *)(const void *)(stack + nr_frames))[i];

		if (module >= d->nr_modules)
			module = LW_NO_MODULE;
		memcpy(modules + i * sizeof(module), &module, sizeof(module));
	}
	return nr_frames;
}

static size_t copy_hint(
	struct dump *d, uint32_t index, struct lw_wire_site *record, unsigned char *to)
{
	const struct lw_hint *hint =
		lw_dump_at(d->region, d->region_bytes, &d->hints, index, sizeof(*hint));
	size_t nr_bytes = 0;
	const char *file;

	if (!index || index >= d->nr_hints || !hint)
		return 0;
	file = pool_text(d, lw_load(&hint->file_off), &nr_bytes);
	if (!file || !nr_bytes)
		return 0;
	record->hint_line = lw_load(&hint->line);
	record->hint_file_bytes = (uint16_t)nr_bytes;
	memcpy(to, file, nr_bytes);
	return nr_bytes;
}

static void insert_moment(struct dump *d, struct lw_moment moment)
{
	uint32_t at = d->nr_samples++;

	for (; at > 0 && d->moments[at - 1].ms > moment.ms; at--)
		d->moments[at] = d->moments[at - 1];
	d->moments[at] = moment;
}

/* When samples were taken. One that is taken meanwhile replaces one of them: a wrong value at most. */
static void read_moments(struct dump *d)
{
	d->nr_samples = 0;
	for (uint32_t slot = 0; slot < LW_HISTORY_SAMPLES; slot++) {
		const struct lw_sample *sample = &d->region->samples[slot];

		if (lw_load_acquire(&sample->is_kept))
			insert_moment(d, (struct lw_moment){.ms = lw_load(&sample->ms),
						 .slot = slot,
						 .nr_sites = lw_load(&sample->nr_sites)});
	}
}

static uint64_t value_at(const uint32_t *tile, uint32_t site, const struct lw_moment *moment)
{
	if (site >= moment->nr_sites)
		return 0;
	return lw_history_unpack(
		lw_load(&tile[moment->slot * LW_CHUNK_SITES + site % LW_CHUNK_SITES]));
}

bool lw_dump_history(struct dump *d, uint32_t site, const struct lw_count *count)
{
	struct lw_wire_history *record = lw_dump_begin(d, LW_WIRE_HISTORY, sizeof(*record));
	const uint32_t *tile = lw_dump_at(d->region, d->region_bytes, &d->history, site / LW_CHUNK_SITES,
		LW_HISTORY_TILE_BYTES);
	const struct lw_held *held = lw_dump_at(d->region, d->region_bytes, &d->held, site, sizeof(*held));
	uint64_t last_bytes = count->alloc_bytes - count->freed_bytes;
	bool is_steady = true;

	if (!tile || !d->nr_samples)
		return true;
	if (held && d->exit_began_ms) {
		record->exit_began_ms = d->exit_began_ms;
		record->held_bytes = last_bytes = lw_load(&held->bytes);
		record->held_blocks = lw_load(&held->blocks);
	}
	last_bytes = lw_history_unpack(lw_history_pack(last_bytes));
	for (uint32_t i = 0; i < d->nr_samples; i++) {
		uint64_t bytes = value_at(tile, site, &d->moments[i]);

		record->samples[i] = (struct lw_wire_sample){d->moments[i].ms, bytes};
		is_steady = is_steady && (bytes == last_bytes || !bytes);
	}
	if (is_steady)
		return true;
	record->site = site;
	record->nr_samples = d->nr_samples;
	return lw_dump_finish(d, sizeof(*record) + d->nr_samples * sizeof(record->samples[0]));
}

bool lw_dump_site(struct dump *d, uint32_t id)
{
	const struct lw_site *live = lw_dump_at(d->region, d->region_bytes, &d->sites, id, sizeof(*live));
	struct lw_wire_site *record = lw_dump_begin(d, LW_WIRE_SITE, sizeof(*record));
	struct lw_site site;
	size_t bytes;

	if (!live)
		return true;
	memcpy(&site, live, sizeof(site));
	record->id = id;
	record->first_ms = site.first_ms;
	record->oldest_ms = site.oldest_ms;
	record->kind = site.kind < LW_NR_KINDS ? site.kind : LW_KIND_UNKNOWN;
	record->flags = site.flags;
	record->nr_frames = copy_stack(d, &site, record);
	bytes = sizeof(*record) + (size_t)record->nr_frames * 10;
	bytes += copy_hint(d, site.hint, record, d->record + bytes);
	d->sent.nr_sites++;
	return lw_dump_finish(d, bytes);
}

bool lw_dump_count(struct dump *d, uint32_t id, const struct lw_count *count, uint32_t oldest_ms)
{
	struct lw_wire_count *record = lw_dump_begin(d, LW_WIRE_COUNT, sizeof(*record));

	record->site = id;
	record->oldest_ms = oldest_ms;
	record->alloc_bytes = count->alloc_bytes;
	record->alloc_blocks = count->alloc_blocks;
	record->freed_bytes = count->freed_bytes;
	record->freed_blocks = count->freed_blocks;
	return lw_dump_finish(d, sizeof(*record));
}

uint32_t lw_dump_oldest(const struct dump *d, uint32_t id)
{
	const struct lw_site *site = lw_dump_at(d->region, d->region_bytes, &d->sites, id, sizeof(*site));

	return site ? lw_load(&site->oldest_ms) : UINT32_MAX;
}

/* The event, copied, if it is complete. */
bool lw_dump_read_event(const struct dump *d, uint32_t index, struct lw_event *event)
{
	const struct lw_event *live =
		lw_dump_at(d->region, d->region_bytes, &d->events, index, sizeof(*live));

	if (!live || !lw_load_acquire(&live->is_ready))
		return false;
	memcpy(event, live, sizeof(*event));
	event->count = lw_load(&live->count);
	return event->what > LW_EVENT_NONE && event->what < LW_NR_EVENT_KINDS;
}

static bool is_in_event(const struct dump *d, uint32_t site)
{
	struct lw_event event;

	for (uint32_t i = 0; i < d->nr_events; i++)
		if (lw_dump_read_event(d, i, &event) &&
			(event.alloc_site == site || event.free_site == site))
			return true;
	return false;
}

static bool emit_sites(struct dump *d)
{
	struct lw_count sums[LW_DUMP_STRETCH];

	for (uint32_t first = 0; first < d->nr_sites; first += LW_DUMP_STRETCH) {
		uint32_t nr = least(LW_DUMP_STRETCH, d->nr_sites - first);

		sum_counts(d->region, d->region_bytes, &d->rows, &d->chunks, d->nr_rows, first, nr,
			sums);
		for (uint32_t i = 0; i < nr; i++) {
			bool is_counted = sums[i].alloc_blocks || sums[i].freed_blocks;

			if (!is_counted && !is_in_event(d, first + i))
				continue;
			if (!lw_dump_site(d, first + i) ||
				!lw_dump_count(d, first + i, &sums[i], lw_dump_oldest(d, first + i)) ||
				!lw_dump_history(d, first + i, &sums[i]))
				return false;
		}
	}
	return true;
}

bool lw_dump_event(struct dump *d, const struct lw_event *event)
{
	struct lw_wire_event *record = lw_dump_begin(d, LW_WIRE_EVENT, sizeof(*record));

	record->what = event->what;
	record->alloc_site = event->alloc_site;
	record->free_site = event->free_site;
	record->first_ms = event->first_ms;
	record->count = event->count;
	record->bytes = event->bytes;
	record->expected = event->expected;
	record->flags = event->flags;
	d->sent.nr_events++;
	return lw_dump_finish(d, sizeof(*record));
}

static bool emit_events(struct dump *d)
{
	for (uint32_t i = 0; i < d->nr_events; i++) {
		struct lw_event event;

		if (lw_dump_read_event(d, i, &event) && !lw_dump_event(d, &event))
			return false;
	}
	return true;
}

/* The mark, if it is complete. */
static const struct lw_mark *mark_at(const struct dump *d, uint32_t index)
{
	const struct lw_mark *live = lw_dump_at(d->region, d->region_bytes, &d->marks, index, sizeof(*live));

	return live && lw_load_acquire(&live->is_ready) ? live : NULL;
}

uint64_t lw_dump_mark_count(const struct dump *d, uint32_t index)
{
	const struct lw_mark *live = mark_at(d, index);

	return live ? lw_load(&live->count) : 0;
}

bool lw_dump_mark(struct dump *d, uint32_t index)
{
	const struct lw_mark *live = mark_at(d, index);
	struct lw_wire_mark *record = lw_dump_begin(d, LW_WIRE_MARK, sizeof(*record));
	size_t name_bytes = 0;
	const char *name;

	if (!live)
		return true;
	name = pool_text(d, lw_load(&live->name_off), &name_bytes);
	record->count = lw_load(&live->count);
	record->first_bytes = lw_load(&live->first_bytes);
	record->first_blocks = lw_load(&live->first_blocks);
	record->last_bytes = lw_load(&live->last_bytes);
	record->last_blocks = lw_load(&live->last_blocks);
	record->first_ms = lw_load(&live->first_ms);
	record->last_ms = lw_load(&live->last_ms);
	record->name_bytes = (uint32_t)name_bytes;
	if (name)
		memcpy(record->name, name, name_bytes);
	return lw_dump_finish(d, sizeof(*record) + name_bytes);
}

static bool emit_marks(struct dump *d)
{
	for (uint32_t i = 0; i < d->nr_marks; i++)
		if (!lw_dump_mark(d, i))
			return false;
	return true;
}

bool lw_dump_totals(struct dump *d)
{
	const struct lw_region_header *region = d->region;
	struct lw_wire_totals *totals = lw_dump_begin(d, LW_WIRE_TOTALS, sizeof(*totals));

	totals->peak_bytes = lw_load(&region->peak_bytes);
	totals->inherited_blocks = lw_load(&region->inherited_blocks);
	totals->own_bytes = lw_load(&region->own_bytes);
	totals->nr_captures = lw_load(&region->nr_captures);
	totals->nr_slow_captures = lw_load(&region->nr_slow_captures);
	totals->report_ns = lw_load(&region->report_ns);
	for (int i = 0; i < LW_NR_DROPS; i++)
		totals->dropped[i] = lw_load(&region->dropped[i]);
	return lw_dump_finish(d, sizeof(*totals));
}

bool lw_dump_bye(struct dump *d)
{
	struct lw_wire_bye *bye = lw_dump_begin(d, LW_WIRE_BYE, sizeof(*bye));

	d->sent.head = bye->head;
	*bye = d->sent;
	return lw_dump_finish(d, sizeof(*bye));
}

bool lw_dump_open(struct dump *d, const struct lw_region_header *region, uint64_t region_bytes,
	lw_emit_sink_fn *sink, void *context)
{
	if (lw_region_check(region, region_bytes))
		return false;
	d->region = region;
	d->region_bytes = region_bytes;
	d->modules = region->modules;
	d->sites = region->sites;
	d->rows = region->rows;
	d->chunks = region->chunks;
	d->events = region->events;
	d->hints = region->hints;
	d->pool = region->pool;
	d->marks = region->marks;
	d->held = region->held;
	d->history = region->history;
	d->scans = region->scans;
	d->chains = region->chains;
	d->sent = (struct lw_wire_bye){0};
	d->sink = sink;
	d->context = context;
	lw_dump_refresh(d);
	return true;
}

void lw_dump_refresh(struct dump *d)
{
	const struct lw_region_header *region = d->region;

	d->exit_began_ms = lw_load_acquire(&region->exit_began_ms);
	read_moments(d);
	/* what names before what is named: an event seen here names sites that are seen too */
	d->nr_events = least(lw_load_acquire(&region->nr_events), d->events.max);
	d->nr_sites = least(lw_load_acquire(&region->nr_sites), d->sites.max);
	d->nr_modules = least(lw_load_acquire(&region->nr_modules), d->modules.max);
	d->nr_hints = least(lw_load_acquire(&region->nr_hints), d->hints.max);
	d->nr_marks = least(lw_load_acquire(&region->nr_marks), d->marks.max);
	d->nr_rows = least(lw_load_acquire(&region->nr_rows), d->rows.max);
}

bool lw_emit_region(const struct lw_region_header *region, uint64_t region_bytes,
	uint64_t now_mono_ns, lw_emit_sink_fn *sink, void *context)
{
	struct dump d;

	return lw_dump_open(&d, region, region_bytes, sink, context) &&
	       lw_dump_hello(&d, now_mono_ns) && lw_dump_texts(&d) && lw_dump_modules(&d, 0) &&
	       emit_sites(&d) && lw_dump_scan(&d) && emit_events(&d) && emit_marks(&d) &&
	       lw_dump_totals(&d) && lw_dump_bye(&d);
}
