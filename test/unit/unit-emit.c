/* SPDX-License-Identifier: MIT */
/*
 * unit-emit.c - what a region holds arrives in the model, through the records; and a region that
 * points outside itself, or is garbage in any byte, is read without a step outside (the sanitizers
 * watch: the region is allocated to the byte).
 */
#include "test/unit/tap.h"
#include "test/unit/fake_region.h"

#include "preload/share/emit.h"
#include "snapshot/model/decode.h"

static struct fake make(void)
{
	static const struct fake_frame stack[] = {{0x100, 1}, {0x200, 0}, {0x300, 0}};
	static const struct fake_frame deep[LW_MAX_FRAMES] = {{0x100, 1}, {0x7777, LW_NO_MODULE}};
	struct fake fake = fake_new();
	uint32_t a, b, freed;

	fake_module(&fake, "/opt/app", 0x400000, 0xaa);
	fake_module(&fake, "/lib/libc.so.6", 0x7f0000000000, 0);
	a = fake_site(&fake, LW_KIND_MALLOC, stack, 3);
	b = fake_site(&fake, LW_KIND_NEW_ARRAY, deep, LW_MAX_FRAMES);
	(void)fake_site(&fake, LW_KIND_CALLOC, stack, 2); /* never counted: left out */
	freed = fake_site(&fake, LW_KIND_DELETE, stack, 1);
	fake_hint(&fake, b, "src/cache.cc", 41);
	*fake_count(&fake, 0, a) = (struct lw_count){100, 10, 0, 0};
	*fake_count(&fake, 2, a) = (struct lw_count){50, 5, 120, 12};
	*fake_count(&fake, 1, b) = (struct lw_count){7, 1, 40, 2}; /* freed more than made */
	*fake_count(&fake, 1, 0) = (struct lw_count){9, 1, 0, 0};
	fake_event(&fake, LW_EVENT_MISMATCH, b, freed, 3);
	fake.header->dropped[LW_DROP_STALE] = 2;
	fake.header->peak_bytes = 200;
	memset(fake.header->suppressions, 's',
		LW_SUPPRESSIONS_BYTES); /* not terminated: two pieces */
	return fake;
}

static struct model *read_region(const struct fake *fake)
{
	struct decode decode = {.model = model_new()};

	(void)lw_emit_region(fake->header, fake->bytes, 0, decode_record, &decode);
	model_finish(decode.model);
	return decode.model;
}

static const struct model_site *site_of(const struct model *model, uint32_t id)
{
	uint32_t found = model_find_site(model, id);

	return found == MODEL_NO_SITE ? NULL : &model->sites[found];
}

static void test_round_trip(void)
{
	struct fake fake = make();
	struct model *model = read_region(&fake);
	const struct model_site *a = site_of(model, 1), *b = site_of(model, 2);

	ok(!decode_missing(model), "all of it arrives");
	is_u64(model->nr_bad, 0, "no record is bad");
	is_u64(model->hello.pid, 4242, "pid");
	is_u64(model->hello.exit_status, 3, "status");
	is_u64(model->hello.seconds_ns, 2500000000, "age at the end");
	is_str(model_text(model, LW_TEXT_EXE), "/opt/app", "exe");
	is_u64(model->text_bytes[LW_TEXT_CMDLINE], 12, "command line with its NULs");
	is_u64(strlen(model_text(model, LW_TEXT_SUPPRESSIONS)), LW_SUPPRESSIONS_BYTES,
		"a text in two pieces");
	is_str(model->modules[0].path, "/opt/app", "module path");
	is_u64(model->modules[0].build_id_bytes, 4, "build id");
	is_u64(a->live_bytes, 30, "counters are summed over the rows");
	is_u64(a->live_blocks, 3, "blocks too");
	is_u64(a->nr_frames, 3, "frames");
	is_u64(model_offset(model, a->pcs[1], a->modules[1]), 0x200, "offset in the module");
	is_u64(b->live_bytes, 0, "fewer than none is none");
	is_u64(b->nr_frames, LW_MAX_FRAMES, "the deepest stack");
	is_u64(b->modules[1], LW_NO_MODULE, "a frame without a module");
	is_str(b->hint_file, "src/cache.cc", "hint");
	is_u64(b->hint_line, 41, "hint line");
	ok(!site_of(model, 3), "a site that never held anything is left out");
	ok(site_of(model, 4) != NULL, "one that only an event names is not");
	ok(site_of(model, 0) != NULL, "site 0 has counters");
	is_u64(model->nr_events, 1, "event");
	is_u64(model->events[0].count, 3, "its count");
	is_u64(model->events[0].free_site, model_find_site(model, 4), "its site");
	is_u64(model->totals.dropped[LW_DROP_STALE], 2, "dropped");
	is_u64(lw_emit_site_count(fake.header, fake.bytes, 1).alloc_blocks, 15,
		"count of one site");
	is_u64(lw_emit_site_count(fake.header, fake.bytes, 99999999).alloc_blocks, 0, "of no site");
	model_free(model);
	fake_free(&fake);
}

/* A module that was loaded twice at two places: one site for people. */
static void test_merge(void)
{
	static const struct fake_frame first[] = {{0x100, 1}, {0x200, 0}};
	static const struct fake_frame again[] = {{0x100, 2}, {0x200, 0}};
	static const struct fake_frame other[] = {{0x100, 3}, {0x200, 0}};
	struct fake fake = fake_new();
	struct model *model;

	fake_module(&fake, "/opt/app", 0x400000, 0xaa);
	fake_module(&fake, "/opt/plugin.so", 0x7f0000000000, 0xbb);
	fake_module(&fake, "/opt/plugin.so", 0x7f1000000000, 0xbb);
	fake_module(&fake, "/opt/plugin.so", 0x7f2000000000, 0xcc); /* rebuilt meanwhile */
	*fake_count(&fake, 0, fake_site(&fake, LW_KIND_MALLOC, first, 2)) =
		(struct lw_count){10, 1, 0, 0};
	*fake_count(&fake, 0, fake_site(&fake, LW_KIND_MALLOC, again, 2)) =
		(struct lw_count){20, 1, 0, 0};
	*fake_count(&fake, 0, fake_site(&fake, LW_KIND_MALLOC, other, 2)) =
		(struct lw_count){5, 1, 0, 0};
	*fake_count(&fake, 0, fake_site(&fake, LW_KIND_CALLOC, first, 2)) =
		(struct lw_count){5, 1, 0, 0};
	fake_sample(&fake, 0, 50, 5, (uint64_t[]){0, 10, 5, 5, 3});
	fake_sample(&fake, 1, 99, 5, (uint64_t[]){0, 10, 8, 5, 4});
	model = read_region(&fake);
	ok(model->sites[0].history && model->sites[0].history->samples[0].bytes == 15 &&
			model->sites[0].history->samples[1].bytes == 18,
		"the past is the sum of both, also where one was always the same");
	is_u64(model->sites[0].live_bytes, 30, "loaded again: one site");
	is_u64(model->sites[1].merged, 0, "the second speaks through the first");
	ok(model_is_held(model, 2) && model_is_held(model, 3),
		"another build or kind is another site");
	model_free(model);
	fake_free(&fake);
}

/* Samples lie in any slot, and arrive in order of time; sites that always held the same have none. */
static void test_history(void)
{
	static const uint64_t early[] = {9, 10, 0}, late[] = {9, 20, 0}, last[] = {9, 30, 7, 0, 0};
	struct fake fake = make();
	const struct model_history *past;
	struct model *model;

	fake_sample(&fake, 7, 300, 5, last);
	fake_sample(&fake, 63, 100, 3, early);
	fake_sample(&fake, 0, 200, 3, late);
	fake_sample(&fake, 1, 250, 3, late);
	fake.header->samples[1].is_kept = 0;
	model = read_region(&fake);
	past = site_of(model, 1)->history;
	ok(past && past->nr_samples == 3, "three samples are kept");
	ok(past->samples[0].ms == 100 && past->samples[1].ms == 200 && past->samples[2].ms == 300,
		"in order of time");
	ok(past->samples[0].bytes == 10 && past->samples[1].bytes == 20 && past->samples[2].bytes == 30,
		"with their values");
	is_u64(past->exit_began_ms, 0, "exit has not begun");
	past = site_of(model, 2)->history;
	ok(past && !past->samples[1].bytes && past->samples[2].bytes == 7,
		"before a site was born it held nothing");
	ok(!site_of(model, 0)->history, "one that always held the same has no past");
	model_free(model);

	fake.header->exit_began_ms = 2000;
	fake_held(&fake, 1, 1 << 30, 12345);
	model = read_region(&fake);
	past = site_of(model, 1)->history;
	is_u64(past->exit_began_ms, 2000, "exit began");
	is_u64(past->held_bytes, 1 << 30, "bytes held then");
	is_u64(past->held_blocks, 12345, "blocks held then");
	model_free(model);
	fake_free(&fake);
}

static void test_pack(void)
{
	static const uint64_t values[] = {0, 1, 4096, (1 << 24) - 1, 1 << 24, UINT64_C(123456789012),
		INT64_MAX, UINT64_MAX};
	bool is_close = true;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint64_t back = lw_history_unpack(lw_history_pack(values[i]));

		is_close = is_close && back <= values[i] && values[i] - back <= values[i] >> 23 &&
			   (values[i] >> 24 || back == values[i]);
	}
	ok(is_close, "values in 32 bits: exact, or nearly");
	is_u64(lw_history_unpack(UINT32_MAX), UINT64_C(0xffffff) << 40, "any 32 bits are a value");
}

static void test_hostile_history(void)
{
	struct fake fake = make();
	struct model *model;

	memset(fake.header->samples, 0xff, sizeof(fake.header->samples));
	fake.header->history.off = fake.bytes - 8;
	fake.header->held.off = UINT64_MAX - 7;
	fake.header->exit_began_ms = UINT64_MAX;
	ok(lw_region_check(fake.header, fake.bytes) != NULL, "tables outside are refused");
	fake.header->history = fake.header->held = fake.header->pool;
	fake.header->history.stride = LW_HISTORY_TILE_BYTES;
	fake.header->history.max = 1;
	fake.header->held.stride = 16;
	fake.header->held.max = 1;
	memset(fake_at(&fake, &fake.header->pool, 0), 0xff, (size_t)fake.header->pool.max * 8);
	model = read_region(&fake);
	ok(model->has_bye && site_of(model, 1)->history, "samples of garbage: still a whole report");
	is_u64(model->nr_bad, 0, "and no bad record");
	model_free(model);
	fake_free(&fake);
}

static void test_hostile(void)
{
	struct fake fake = make();
	struct lw_site *site = fake_at(&fake, &fake.header->sites, 1);
	struct lw_module *module = fake_at(&fake, &fake.header->modules, 0);
	uint32_t *dir = (uint32_t *)(void *)((char *)fake_at(&fake, &fake.header->rows, 0) +
					     sizeof(struct lw_row));
	struct model *model;

	site->stack_off = fake.header->pool.max - 1;
	site->nr_frames = UINT16_MAX;
	site->kind = 250;
	site->hint = UINT32_MAX;
	module->path_off = UINT32_MAX;
	module->build_id_bytes = 255;
	dir[0] = UINT32_MAX;
	fake.header->nr_sites = fake.header->nr_rows = fake.header->nr_events = UINT32_MAX;
	fake.header->nr_modules = fake.header->nr_hints = UINT32_MAX;
	fake.header->cmdline_bytes = UINT32_MAX;
	memset(fake.header->exe, 'x', LW_EXE_BYTES);
	model = read_region(&fake);
	ok(!decode_missing(model), "indices beyond everything: still a whole report");
	is_u64(site_of(model, 1)->nr_frames, 0, "a stack outside the pool is no stack");
	is_u64(strlen(model_text(model, LW_TEXT_EXE)), LW_EXE_BYTES, "an endless text is cut");
	model_free(model);
	fake.header->magic = 1;
	ok(!lw_emit_region(fake.header, fake.bytes, 0, NULL, NULL),
		"no region: nothing is emitted");
	fake_free(&fake);
}

static bool stop_at_third(void *context, const struct lw_wire_head *record)
{
	(void)record;
	return ++*(int *)context < 3;
}

/* Random bytes over the whole of it, a few thousand times; the sanitizers are the judge. */
static void test_random(void)
{
	uint64_t seed = 12345;
	int nr_reports = 0, nr_seen = 0;
	static const uint64_t values[] = {1, 2, 3, 4, 5};
	struct fake good = make();

	for (uint32_t slot = 0; slot < LW_HISTORY_SAMPLES; slot++)
		fake_sample(&good, slot, 50 * slot, 1 + slot % 5, values);
	for (int round = 0; round < 300; round++) {
		struct fake bad = {malloc(good.bytes), good.bytes};
		struct model *model;

		memcpy(bad.header, good.header, good.bytes);
		for (int i = 0; i < 40; i++) {
			uint64_t where;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* mostly where something stands */
			where = (seed >> 20) % (i % 2 ? bad.bytes : sizeof(*bad.header) + 4096);
			((unsigned char *)bad.header)[where] = (unsigned char)(seed >> 56);
		}
		model = read_region(&bad);
		nr_reports += model->has_hello;
		model_free(model);
		free(bad.header);
	}
	ok(nr_reports > 0, "random damage: %d of 300 still gave a report", nr_reports);
	ok(!lw_emit_region(good.header, good.bytes, 0, stop_at_third, &nr_seen) && nr_seen == 3,
		"a sink that has enough stops it");
	fake_free(&good);
}

int main(void)
{
	test_round_trip();
	test_history();
	test_pack();
	test_merge();
	test_hostile();
	test_hostile_history();
	test_random();
	return done();
}
