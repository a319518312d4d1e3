/* SPDX-License-Identifier: MIT */
/*
 * emit.c - reads a region and says it in wire records, once, for every transport.
 *
 * Here are the records of the process as a whole, and the order of all. How a region is read that may be changing,
 * or be hostile, stands in dump.c; the other records in the files beside that.
 *
 * Runs inside the target too: no allocation, no libc state.
 */
#include "preload/share/emit.h"

#include <string.h>

#include "preload/base/base.h"
#include "preload/share/dump.h"

_Static_assert(LW_NR_DROPS <= 16, "totals have room for each reason");
_Static_assert(LW_BUILD_ID_BYTES == sizeof(((struct lw_wire_module *)0)->build_id), "same length");

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
	uint32_t cmdline_bytes = lw_dump_cut(region->cmdline_bytes, LW_CMDLINE_BYTES);

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
		path = lw_dump_text(d, lw_load(&module->path_off), &path_bytes);
		record->base = module->base;
		record->start = module->start;
		record->end = module->end;
		record->id = i;
		record->path_bytes = (uint16_t)path_bytes;
		record->build_id_bytes = (uint8_t)lw_dump_cut(module->build_id_bytes, LW_BUILD_ID_BYTES);
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
		uint32_t nr = lw_dump_cut(LW_DUMP_STRETCH, d->nr_sites - first);

		lw_dump_sum(d, first, nr, sums);
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

static bool emit_events(struct dump *d)
{
	for (uint32_t i = 0; i < d->nr_events; i++) {
		struct lw_event event;

		if (lw_dump_read_event(d, i, &event) && !lw_dump_event(d, &event))
			return false;
	}
	return true;
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

bool lw_emit_region(const struct lw_region_header *region, uint64_t region_bytes,
	uint64_t now_mono_ns, lw_emit_sink_fn *sink, void *context)
{
	struct dump d;

	return lw_dump_open(&d, region, region_bytes, sink, context) &&
	       lw_dump_hello(&d, now_mono_ns) && lw_dump_texts(&d) && lw_dump_modules(&d, 0) &&
	       emit_sites(&d) && lw_dump_scan(&d) && emit_events(&d) && emit_marks(&d) &&
	       lw_dump_totals(&d) && lw_dump_bye(&d);
}
