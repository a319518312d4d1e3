/* SPDX-License-Identifier: MIT */
/*
 * decode.c - checks each record, then puts it into the model.
 *
 * One function a record type; each returns false for a record that makes no sense, before it has
 * changed anything. Fixed parts are copied out of the record, so that no misaligned or later
 * changing byte is read twice. Counts inside a record are compared with record->bytes in 64 bits.
 *
 * Records may come again (a stream repeats what changed) and out of order (a file may be damaged):
 * a SITE that is known already replaces its stack, a COUNT before its SITE makes the site. The
 * first HELLO decides which process this is; a later one only refreshes it, if it is the same
 * process's.
 */
#include "snapshot/model/decode.h"

#include <stdio.h>

#include "snapshot/alloc.h"

enum { MAX_NAME_BYTES = 4096 };

const char *decode_head(const struct lw_wire_head *head)
{
	if (head->type <= 0)
		return "a record has no type";
	if (head->bytes < sizeof(*head) || head->bytes > LW_WIRE_MAX || head->bytes % 8)
		return "a record has an impossible size";
	return NULL;
}

static bool take_hello(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_hello hello;

	if (bytes < sizeof(hello))
		return false;
	memcpy(&hello, record, sizeof(hello));
	if (hello.pid <= 0 || hello.state > LW_STATE_REPORTED || hello.end_kind > LW_END_QUICK_EXIT)
		return false;
	if (model->has_hello && hello.pid != model->hello.pid)
		return false;
	model->hello = hello;
	model->has_hello = true;
	return true;
}

static bool take_text(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_text text;
	char **to;

	if (bytes < sizeof(text))
		return false;
	memcpy(&text, record, sizeof(text));
	if (!text.what || text.what >= MODEL_TEXTS || text.nr_bytes > bytes - sizeof(text))
		return false;
	if (text.total_bytes > MODEL_TEXT_BYTES ||
		(uint64_t)text.offset + text.nr_bytes > text.total_bytes)
		return false;
	to = &model->texts[text.what];
	if (!*to || model->text_bytes[text.what] != text.total_bytes) {
		free(*to);
		*to = alloc_array((size_t)text.total_bytes + 1, 1);
		model->text_bytes[text.what] = text.total_bytes;
	}
	memcpy(*to + text.offset, (const char *)record + sizeof(text), text.nr_bytes);
	return true;
}

static bool take_module(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_module module;
	struct model_module *to;

	if (bytes < sizeof(module))
		return false;
	memcpy(&module, record, sizeof(module));
	if (module.id >= LW_MAX_MODULES || module.build_id_bytes > LW_BUILD_ID_BYTES)
		return false;
	if (module.path_bytes > bytes - sizeof(module) || module.path_bytes > MAX_NAME_BYTES)
		return false;
	to = model_intern_module(model, module.id);
	free(to->path);
	*to = (struct model_module){
		.is_known = true,
		.is_unloaded = module.is_unloaded != 0,
		.build_id_bytes = module.build_id_bytes,
		.path = alloc_text((const char *)record + sizeof(module), module.path_bytes),
		.base = module.base,
		.start = module.start,
		.end = module.end,
	};
	memcpy(to->build_id, module.build_id, module.build_id_bytes);
	model->nr_modules_seen++;
	return true;
}

/* The frames, in one allocation: pcs, then modules. */
static void take_stack(struct model_site *to, const unsigned char *frames, uint16_t nr_frames)
{
	free(to->pcs);
	to->nr_frames = nr_frames;
	to->pcs = alloc_array(nr_frames, sizeof(uint64_t) + sizeof(uint16_t));
	to->modules = (uint16_t *)(void *)(to->pcs + nr_frames);
	memcpy(to->pcs, frames, (size_t)nr_frames * 10);
}

static bool take_site(struct model *model, const void *record, uint64_t bytes)
{
	const unsigned char *rest = (const unsigned char *)record + sizeof(struct lw_wire_site);
	struct lw_wire_site site;
	struct model_site *to;

	if (bytes < sizeof(site))
		return false;
	memcpy(&site, record, sizeof(site));
	if (site.nr_frames > LW_MAX_FRAMES || site.hint_file_bytes > MAX_NAME_BYTES)
		return false;
	if ((uint64_t)site.nr_frames * 10 + site.hint_file_bytes > bytes - sizeof(site))
		return false;
	if (site.kind >= LW_NR_KINDS)
		return false;
	to = model_intern_site(model, site.id);
	if (!to)
		return false;
	to->kind = site.kind;
	to->flags = site.flags;
	to->first_ms = site.first_ms;
	to->oldest_ms = site.oldest_ms;
	take_stack(to, rest, site.nr_frames);
	free(to->hint_file);
	to->hint_file = NULL;
	to->hint_line = 0;
	if (site.hint_file_bytes) {
		to->hint_line = site.hint_line;
		to->hint_file =
			alloc_text((const char *)rest + site.nr_frames * 10, site.hint_file_bytes);
	}
	model->nr_sites_seen++;
	return true;
}

static bool take_count(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_count count;
	struct model_site *to;

	if (bytes < sizeof(count))
		return false;
	memcpy(&count, record, sizeof(count));
	to = model_intern_site(model, count.site);
	if (!to)
		return false;
	to->count = (struct lw_count){
		count.alloc_bytes, count.alloc_blocks, count.freed_bytes, count.freed_blocks};
	if (count.oldest_ms != UINT32_MAX) /* a region does not know it while its process runs */
		to->oldest_ms = count.oldest_ms;
	model_count_live(to);
	return true;
}

/* Samples in order of time; the process had no more moments than the region has room for. */
static bool take_history(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_history history;
	struct model_history *past;
	struct model_site *to;
	uint64_t nr_bytes;

	if (bytes < sizeof(history))
		return false;
	memcpy(&history, record, sizeof(history));
	nr_bytes = (uint64_t)history.nr_samples * sizeof(past->samples[0]);
	if (history.nr_samples > LW_HISTORY_SAMPLES || nr_bytes > bytes - sizeof(history))
		return false;
	past = alloc_array(1, sizeof(*past) + nr_bytes);
	*past = (struct model_history){.nr_samples = history.nr_samples,
		.nr_noted = history.nr_samples,
		.exit_began_ms = history.exit_began_ms,
		.held_bytes = history.held_bytes,
		.held_blocks = history.held_blocks};
	memcpy(past->samples, (const char *)record + sizeof(history), nr_bytes);
	for (uint32_t i = 1; i < past->nr_samples; i++)
		if (past->samples[i].ms < past->samples[i - 1].ms)
			past->nr_samples = 0;
	to = past->nr_samples == history.nr_samples ? model_intern_site(model, history.site) : NULL;
	if (!to) {
		free(past);
		return false;
	}
	free(to->history);
	to->history = past;
	return true;
}

/* In a stream an event comes again when its count has risen; a region has at most LW_MAX_EVENTS. */
static struct model_event *known_event(struct model *model, const struct lw_wire_event *event)
{
	for (size_t i = 0; i < model->nr_events && i < LW_MAX_EVENTS; i++) {
		struct model_event *known = &model->events[i];

		if (known->what == event->what && known->alloc_site == event->alloc_site &&
			known->free_site == event->free_site)
			return known;
	}
	return NULL;
}

static bool take_event(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_event event;
	struct model_event *to;

	if (bytes < sizeof(event))
		return false;
	memcpy(&event, record, sizeof(event));
	if (event.what <= LW_EVENT_NONE || event.what >= LW_NR_EVENT_KINDS || !event.count)
		return false;
	to = known_event(model, &event);
	if (!to)
		to = model_add_event(model);
	if (!to)
		return false;
	*to = (struct model_event){.what = event.what,
		.alloc_site = event.alloc_site,
		.free_site = event.free_site,
		.first_ms = event.first_ms,
		.flags = event.flags,
		.count = event.count,
		.bytes = event.bytes,
		.expected = event.expected};
	model->nr_events_seen++;
	return true;
}

static bool take_scan(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_scan scan;

	if (bytes < sizeof(scan))
		return false;
	memcpy(&scan, record, sizeof(scan));
	if (scan.state >= LW_NR_SCAN_STATES)
		return false;
	model->scan = scan;
	model->has_scan = true;
	model->is_scan_whole = true;
	return true;
}

static bool is_text(const char *text, size_t bytes)
{
	return memchr(text, '\0', bytes) != NULL;
}

/* The records of another scan follow: what the last one said is over. */
static void begin_scan(struct model *model)
{
	if (!model->is_scan_whole)
		return;
	model->is_scan_whole = false;
	model->nr_chains = 0;
	for (size_t i = 0; i < model->nr_sites; i++)
		model->sites[i].scan = (struct lw_scan_site){0};
}

static bool take_chain(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_chain chain;

	if (bytes < sizeof(chain))
		return false;
	memcpy(&chain, record, sizeof(chain));
	begin_scan(model);
	if (chain.chain.root >= LW_NR_ROOT_KINDS || chain.chain.nr_first > LW_FIRST_BYTES ||
		!is_text(chain.chain.place.name, sizeof(chain.chain.place.name)) ||
		!is_text(chain.chain.type.name, sizeof(chain.chain.type.name)) || model->nr_chains >= LW_MAX_CHAINS)
		return false;
	model->chains = alloc_grow(model->chains, model->nr_chains, &model->max_chains, sizeof(*model->chains));
	model->chains[model->nr_chains++] = chain.chain;
	return true;
}

static bool take_scan_site(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_scan_site found;
	struct model_site *to;

	if (bytes < sizeof(found))
		return false;
	memcpy(&found, record, sizeof(found));
	begin_scan(model);
	to = model_intern_site(model, found.site);
	if (!to)
		return false;
	to->scan = (struct lw_scan_site){.lost_bytes = found.lost_bytes,
		.lost_blocks = found.lost_blocks,
		.indirect_bytes = found.indirect_bytes,
		.indirect_blocks = found.indirect_blocks,
		.dragged_bytes = found.dragged_bytes,
		.dragged_blocks = found.dragged_blocks};
	return true;
}

static bool take_mark(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_mark mark;
	struct model_mark *to;
	char *name;

	if (bytes < sizeof(mark))
		return false;
	memcpy(&mark, record, sizeof(mark));
	if (mark.name_bytes > bytes - sizeof(mark) || !mark.count)
		return false;
	name = alloc_text((const char *)record + sizeof(mark), mark.name_bytes);
	to = model_intern_mark(model, name); /* takes the name */
	if (!to)
		return false;
	to->count = mark.count;
	to->first = (struct model_held){mark.first_bytes, mark.first_blocks, mark.first_ms};
	to->last = (struct model_held){mark.last_bytes, mark.last_blocks, mark.last_ms};
	return true;
}

static bool take_totals(struct model *model, const void *record, uint64_t bytes)
{
	if (bytes < sizeof(model->totals))
		return false;
	memcpy(&model->totals, record, sizeof(model->totals));
	model->has_totals = true;
	return true;
}

static bool take_bye(struct model *model, const void *record, uint64_t bytes)
{
	if (bytes < sizeof(model->bye))
		return false;
	memcpy(&model->bye, record, sizeof(model->bye));
	model->has_bye = true;
	return true;
}

/* Where one tick of a stream ends; whoever samples it looks at nr_ticks. */
static bool take_tick(struct model *model, const void *record, uint64_t bytes)
{
	struct lw_wire_tick tick;

	if (bytes < sizeof(tick))
		return false;
	memcpy(&tick, record, sizeof(tick));
	model->tick_ns = tick.at_ns;
	model->nr_lost_messages = tick.nr_lost;
	model->is_still = tick.flags & LW_TICK_STILL;
	model->nr_ticks++;
	return true;
}

static bool (*const takers[LW_WIRE_NR_TYPES])(struct model *, const void *, uint64_t) = {
	[LW_WIRE_HELLO] = take_hello,
	[LW_WIRE_TEXT] = take_text,
	[LW_WIRE_MODULE] = take_module,
	[LW_WIRE_SITE] = take_site,
	[LW_WIRE_COUNT] = take_count,
	[LW_WIRE_EVENT] = take_event,
	[LW_WIRE_TOTALS] = take_totals,
	[LW_WIRE_BYE] = take_bye,
	[LW_WIRE_HISTORY] = take_history,
	[LW_WIRE_SCAN] = take_scan,
	[LW_WIRE_SCAN_SITE] = take_scan_site,
	[LW_WIRE_CHAIN] = take_chain,
	[LW_WIRE_MARK] = take_mark,
	[LW_WIRE_TICK] = take_tick,
};

bool decode_record(void *context, const struct lw_wire_head *record)
{
	struct decode *decode = context;
	const char *wrong = decode_head(record);

	if (wrong) {
		(void)snprintf(decode->why, sizeof(decode->why), "%s", wrong);
		return false;
	}
	if (record->version != LW_WIRE_VERSION) {
		(void)snprintf(decode->why, sizeof(decode->why),
			"the records are of version %u, this program speaks %u", record->version,
			LW_WIRE_VERSION);
		return false;
	}
	decode->model->is_in_tick = record->type != LW_WIRE_TICK && record->type != LW_WIRE_BYE;
	if (record->type >= LW_WIRE_NR_TYPES || !takers[record->type])
		decode->model->nr_unknown++;
	else if (!takers[record->type](decode->model, record, record->bytes))
		decode->model->nr_bad++;
	return true;
}

const char *decode_missing(const struct model *model)
{
	if (!model->has_hello)
		return "no record says which process this is";
	if (model->is_cut)
		return "its end was cut off";
	if (!model->has_bye)
		return model->nr_ticks && !model->is_in_tick ? NULL : "the records end too early";
	if (model->bye.nr_modules > model->nr_modules_seen ||
		model->bye.nr_sites > model->nr_sites_seen ||
		model->bye.nr_events > model->nr_events_seen)
		return "some records are missing";
	return NULL;
}
