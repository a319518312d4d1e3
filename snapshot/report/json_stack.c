/* SPDX-License-Identifier: MIT */
/*
 * json_stack.c - texts, numbers and stacks of the JSON report; see json_parts.h.
 *
 * Byte strings that are not UTF-8 (a path may be anything) keep what is valid; each other byte becomes U+FFFD.
 */
#include "snapshot/report/json_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "snapshot/alloc.h"

/* How many bytes a valid UTF-8 character at text has; 0: not valid. */
static size_t utf8_bytes(const unsigned char *text)
{
	size_t nr = text[0] < 0x80	 ? 1
		    : text[0] >> 5 == 6	 ? 2
		    : text[0] >> 4 == 14 ? 3
		    : text[0] >> 3 == 30 ? 4
					 : 0;
	uint32_t code = nr > 1 ? text[0] & (0x7fu >> nr) : text[0];
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	for (size_t i = 1; i < nr; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[nr] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : nr;
}

json_t *json_text(const char *text)
{
	json_t *value = json_string(text);
	size_t used = 0;
	char *clean;

	if (value)
		return value;
	clean = alloc_array(strlen(text) * 3 + 1, 1);
	while (*text) {
		size_t nr = utf8_bytes((const unsigned char *)text);

		memcpy(clean + used, nr ? text : "\xef\xbf\xbd", nr ? nr : 3);
		used += nr ? nr : 3;
		text += nr ? nr : 1;
	}
	value = json_string(clean);
	free(clean);
	return value;
}

json_t *json_number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *json_hex(uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *json_build_id(const struct model_module *module)
{
	char text[2 * LW_BUILD_ID_BYTES + 1] = "";

	for (unsigned i = 0; i < module->build_id_bytes; i++)
		(void)snprintf(text + (size_t)2 * i, 3, "%02x", module->build_id[i]);
	return json_string(text);
}

/* ---- frames ---- */

static json_t *make_frame(const struct report_frame *frame)
{
	const struct symbol_frame *symbol = frame->symbol;
	json_t *out = json_object();

	json_object_set_new(out, "pc", json_hex(frame->pc));
	if (frame->module) {
		json_object_set_new(out, "module", json_text(frame->module->path));
		if (frame->module->build_id_bytes)
			json_object_set_new(out, "build_id", json_build_id(frame->module));
		json_object_set_new(out, "offset", json_hex(frame->offset));
	}
	if (symbol->function)
		json_object_set_new(out, "function", json_text(symbol->function));
	if (symbol->file)
		json_object_set_new(out, "file", json_text(symbol->file));
	if (symbol->line)
		json_object_set_new(out, "line", json_integer(symbol->line));
	if (symbol->column)
		json_object_set_new(out, "column", json_integer(symbol->column));
	json_object_set_new(out, "inlined", json_boolean(symbol->inlined));
	return out;
}

static struct json_frame *find_cached(struct json_writer *w, uint64_t pc, uint32_t module, uint32_t place)
{
	uint64_t hash = (pc * 31 + module) * 31 + place;
	size_t slot = (hash * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (w->max_cached - 1);

	while (w->cache[slot].frame &&
		(w->cache[slot].pc != pc || w->cache[slot].module != module ||
			w->cache[slot].place != place))
		slot = (slot + 1) & (w->max_cached - 1);
	return &w->cache[slot];
}

static void grow_cache(struct json_writer *w)
{
	struct json_frame *old = w->cache;
	size_t nr_old = w->max_cached;

	w->max_cached = nr_old ? nr_old * 2 : 4096;
	w->cache = alloc_array(w->max_cached, sizeof(*w->cache));
	for (size_t i = 0; i < nr_old; i++)
		if (old[i].frame)
			*find_cached(w, old[i].pc, old[i].module, old[i].place) = old[i];
	free(old);
}

/* A new reference to the frame's value. */
static json_t *shared_frame(struct json_writer *w, const struct report_frame *frame, uint32_t place)
{
	struct json_frame *found;

	if (w->nr_cached * 2 >= w->max_cached)
		grow_cache(w);
	found = find_cached(w, frame->pc, frame->module_id, place);
	if (!found->frame) {
		*found = (struct json_frame){frame->pc, frame->module_id, place, make_frame(frame)};
		w->nr_cached++;
	}
	return json_incref(found->frame);
}

json_t *json_stack(struct json_writer *w, const struct model_site *site)
{
	json_t *out = json_array();
	uint32_t place = 0;

	report_stack(w->report, site, &w->stack);
	for (size_t i = 0; i < w->stack.nr_frames; i++) {
		const struct report_frame *frame = &w->stack.frames[i];

		/* the frames of one pc: each but the last is inlined into the next */
		place = i && w->stack.frames[i - 1].symbol->inlined ? place + 1 : 0;
		json_array_append_new(out, shared_frame(w, frame, place));
	}
	return out;
}

void json_forget_frames(struct json_writer *w)
{
	for (size_t i = 0; i < w->max_cached; i++)
		if (w->cache[i].frame)
			json_decref(w->cache[i].frame);
	free(w->cache);
	free(w->stack.frames);
}
