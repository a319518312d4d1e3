/* SPDX-License-Identifier: MIT */
/*
 * report.h - a report of a made-up process, as text and as JSON. Names come from a small table here in place of
 * symbols.c, so nothing depends on this machine.
 */
#ifndef LW_TEST_REPORT_H
#define LW_TEST_REPORT_H

#include "test/unit/tap.h"
#include "test/unit/fake_region.h"

#include <jansson.h>

#include "preload/share/emit.h"
#include "snapshot/model/decode.h"
#include "snapshot/report/format.h"
#include "snapshot/report/report.h"
#include "snapshot/report/trend_text.h"

/* ---- names, in place of symbols.c ---- */

struct symbols {
	unsigned nr_modules;
};

struct symbols *symbols_new(const char *root_prefix)
{
	(void)root_prefix;
	return calloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *symbols)
{
	free(symbols);
}

void symbols_module(struct symbols *symbols, unsigned id, const char *path, const uint8_t *build_id,
	size_t build_id_bytes)
{
	(void)id, (void)path, (void)build_id, (void)build_id_bytes;
	symbols->nr_modules++;
}

const char *symbols_variable(struct symbols *symbols, unsigned module, uint64_t offset, uint64_t *into)
{
	(void)symbols, (void)module, (void)offset, (void)into;
	return NULL;
}

const struct symbol_frame *symbols_resolve(
	struct symbols *symbols, unsigned module, uint64_t offset, bool exact_pc, size_t *nr_frames)
{
	static const struct symbol_frame unknown = {0},
					 strdup_frame = {"__strdup", NULL, 0, 0, false};
	static const struct symbol_frame start = {"_start", NULL, 0, 0, false};
	static const struct symbol_frame in_main = {"main", "app.c", 30, 0, false};
	static const struct symbol_frame bad = {"evil\033[2J\xff", "a\nb.c", 1, 0, false};
	static const struct symbol_frame inlined[] = {
		{"helper", "app.h", 7, 3, true}, {"work(int)", "app.c", 12, 5, false}};

	(void)symbols, (void)exact_pc;
	*nr_frames = 1;
	if (module == 1)
		return offset == 0x100 ? &strdup_frame : &unknown;
	*nr_frames = offset == 0x200 ? 2 : 1;
	return offset == 0x200	 ? inlined
	       : offset == 0x300 ? &in_main
	       : offset == 0x400 ? &start
	       : offset == 0x500 ? &bad
				 : &unknown;
}

const char *symbols_callee(struct symbols *symbols, unsigned module, uint64_t offset)
{
	(void)symbols;
	return module == 0 && offset == 0x200	? "strdup"
	       : module == 0 && offset == 0x600 ? "setlocale"
						: NULL;
}

/* ---- one process ---- */

__attribute__((unused)) static struct fake make(void)
{
	static const struct fake_frame inlined[] = {{0x200, 0}, {0x300, 0}, {0x150, 1}, {0x400, 0}};
	static const struct fake_frame copied[] = {{0x100, 1}, {0x200, 0}, {0x300, 0}};
	static const struct fake_frame bare[] = {{0x700, 0}};
	static const struct fake_frame kept[] = {{0x110, 1}, {0x600, 0}};
	static const struct fake_frame evil[] = {{0x500, 0}};
	struct fake fake = fake_new();
	uint32_t site, freed;

	fake_module(&fake, "/opt/app", 0x400000, 0xaa);
	fake_module(&fake, "/lib/libc.so.6", 0x7f0000000000, 0);
	*fake_count(&fake, 0, 0) = (struct lw_count){1, 1, 0, 0};
	site = fake_site(&fake, LW_KIND_MALLOC, copied, 3);
	*fake_count(&fake, 0, site) = (struct lw_count){15, 1, 0, 0};
	site = fake_site(&fake, LW_KIND_NEW, inlined, 4);
	*fake_count(&fake, 0, site) = (struct lw_count){4000000, 40, 2000000, 20};
	fake_hint(&fake, site, "src/cache.cc", 41);
	site = fake_site(&fake, LW_KIND_CALLOC, bare, 1);
	((struct lw_site *)fake_at(&fake, &fake.header->sites, site))->flags = LW_SITE_TRUNCATED;
	((struct lw_site *)fake_at(&fake, &fake.header->sites, site))->oldest_ms = UINT32_MAX;
	*fake_count(&fake, 0, site) = (struct lw_count){300, 3, 0, 0};
	site = fake_site(&fake, LW_KIND_MALLOC, kept, 2);
	*fake_count(&fake, 0, site) = (struct lw_count){5000, 1, 0, 0};
	site = fake_site(&fake, LW_KIND_MALLOC, evil, 1);
	*fake_count(&fake, 0, site) = (struct lw_count){8, 1, 0, 0};
	freed = fake_site(&fake, LW_KIND_FREE, inlined, 2);
	fake_event(&fake, LW_EVENT_MISMATCH, 2, freed, 3);
	fake_event(&fake, LW_EVENT_UNKNOWN_FREE, 0, freed, 1);
	fake.header->peak_bytes = 3000000;
	fake.header->own_bytes = 1 << 20;
	fake.header->dropped[LW_DROP_STALE] = 2;
	return fake;
}

struct made {
	struct report report;
	struct suppress suppress;
	struct lw_options options;
};

static void judge(
	struct made *made, const struct fake *fake, const char *settings, const char *rules)
{
	struct decode decode = {.model = model_new()};
	size_t first_bad;

	memset(made, 0, sizeof(*made));
	(void)lw_emit_region(fake->header, fake->bytes, 0, decode_record, &decode);
	model_finish(decode.model);
	lw_options_init(&made->options);
	lw_options_parse(&made->options, settings, "test", NULL, NULL);
	(void)suppress_parse(&made->suppress, rules, strlen(rules), &first_bad);
	made->report = (struct report){.model = decode.model,
		.symbols = symbols_new(""),
		.suppress = &made->suppress,
		.options = &made->options,
		.state = "exit",
		.missing = decode_missing(decode.model),
		.began_ns = report_now_ns()};
	report_judge(&made->report);
}

static void unmake(struct made *made)
{
	report_fini(&made->report);
	symbols_free(made->report.symbols);
	model_free(made->report.model);
	suppress_fini(&made->suppress);
}

/* The text; what LeakWatch cost is cut from the line of totals, since it is never the same. */
static char *text_of(struct made *made)
{
	char *text = NULL, *cost, *end;
	size_t nr_bytes;
	FILE *memory = open_memstream(&text, &nr_bytes);

	report_text(&made->report, memory, false);
	(void)fclose(memory);
	cost = strstr(text, "; LeakWatch took");
	end = cost ? strchr(cost, '\n') : NULL;
	if (end)
		memmove(cost, end, strlen(end) + 1);
	return text;
}

__attribute__((unused)) static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

__attribute__((unused)) static json_t *json_of(struct made *made)
{
	char *text = NULL;
	size_t nr_bytes;
	FILE *memory = open_memstream(&text, &nr_bytes);
	json_t *tree;

	ok(report_json(&made->report, memory), "JSON is written");
	(void)fclose(memory);
	tree = json_loads(text, 0, NULL);
	ok(tree != NULL, "and is valid");
	free(text);
	return tree;
}

#endif
