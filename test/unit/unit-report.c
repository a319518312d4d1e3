/* SPDX-License-Identifier: MIT */
/*
 * unit-report.c - the text report, word for word, and the JSON report, read back: order, sums,
 * suppressions, what is listed, and names that are no UTF-8 or would move a terminal's cursor.
 * Names come from a small table here in place of symbols.c, so nothing depends on this machine.
 */
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

static struct fake make(void)
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

static const char golden[] =
	"LeakWatch: app (pid 4242) leaked 1.9 MiB (2000324 bytes) in 26 blocks, from 5 sites; 2 "
	"wrong releases\n"
	"  command: app --serve\n"
	"  ran 2.5 s, ended by exit with status 3\n"
	"\n"
	"Unfreed: 1.9 MiB (2000000 bytes) in 20 blocks, 100% of all\n"
	"  new at src/cache.cc:41, of 40 blocks (3.8 MiB) ever allocated here, oldest 2.0 s ago\n"
	"    #0 0x0000004001ff in helper app.h:7:3 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #1 0x0000004001ff in work(int) app.c:12:5 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #2 0x0000004002ff in main app.c:30 (app+0x2ff) (BuildId: aaaaaaaa)\n"
	"\n"
	"Unfreed: 300 bytes in 3 blocks\n"
	"  calloc, none was ever freed, first seen 2.4 s ago\n"
	"    #0 0x0000004006ff (/opt/app+0x6ff) (BuildId: aaaaaaaa)\n"
	"    (deeper frames were cut: depth=32)\n"
	"\n"
	"Unfreed: 15 bytes in 1 block\n"
	"  malloc through strdup, oldest 2.0 s ago\n"
	"    #0 0x0000004001ff in helper app.h:7:3 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #1 0x0000004001ff in work(int) app.c:12:5 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #2 0x0000004002ff in main app.c:30 (app+0x2ff) (BuildId: aaaaaaaa)\n"
	"\n"
	"Unfreed: 8 bytes in 1 block\n"
	"  malloc, oldest 2.0 s ago\n"
	"    #0 0x0000004004ff in evil?[2J\xff a?b.c:1 (app+0x4ff) (BuildId: aaaaaaaa)\n"
	"\n"
	"Unfreed: 1 byte in 1 block\n"
	"  unknown, oldest 2.5 s ago\n"
	"    (stack unknown)\n"
	"\n"
	"Mismatch: a block of 40 bytes from new was released by free, 3 times\n"
	"  released:\n"
	"    #0 0x0000004001ff in helper app.h:7:3 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #1 0x0000004001ff in work(int) app.c:12:5 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #2 0x0000004002ff in main app.c:30 (app+0x2ff) (BuildId: aaaaaaaa)\n"
	"  allocated at src/cache.cc:41:\n"
	"    #0 0x0000004001ff in helper app.h:7:3 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #1 0x0000004001ff in work(int) app.c:12:5 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #2 0x0000004002ff in main app.c:30 (app+0x2ff) (BuildId: aaaaaaaa)\n"
	"\n"
	"Unknown free: free was given an address that is no block\n"
	"  released:\n"
	"    #0 0x0000004001ff in helper app.h:7:3 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #1 0x0000004001ff in work(int) app.c:12:5 (app+0x1ff) (BuildId: aaaaaaaa)\n"
	"    #2 0x0000004002ff in main app.c:30 (app+0x2ff) (BuildId: aaaaaaaa)\n"
	"\n"
	"Totals: live 1.9 MiB (2005324 bytes) in 27 blocks (4.9 KiB of the C runtime's own), peak "
	"2.9 MiB "
	"(3000000 bytes), 47 allocations, 20 frees, 6 sites; dropped: 2 stale records replaced\n"
	"SUMMARY: LeakWatch: 2000324 byte(s) leaked in 26 allocation(s).\n";

/* Names the first line that differs. */
static void is_text(const char *got, const char *want, const char *name)
{
	size_t at = 0, line = 0;

	while (got[at] && got[at] == want[at])
		at++;
	if (!ok(got[at] == want[at], "%s", name)) {
		for (line = at; line && got[line - 1] != '\n'; line--)
			;
		printf("# got    %.*s\n", (int)strcspn(got + line, "\n"), got + line);
		printf("# wanted %.*s\n", (int)strcspn(want + line, "\n"), want + line);
	}
}

static void test_text(const struct fake *fake)
{
	struct made made;
	char *text;

	judge(&made, fake, "", "");
	text = text_of(&made);
	is_text(text, golden, "the whole text");
	ok(report_has_news(&made.report), "there is something to say");
	free(text);
	unmake(&made);

	judge(&made, fake, "top=1:full_stacks=1:runtime=1", "leak:helper\nleak:nothing\n");
	text = text_of(&made);
	ok(strstr(text, "leaked 309 bytes in 5 blocks, from 3 sites"),
		"suppressed sites do not count");
	ok(strstr(text, "     21    2000015 helper\n"), "what was suppressed is counted");
	ok(!strstr(text, "nothing\n"), "a rule that matched nothing is not named");
	ok(strstr(text, "Not listed: 2 more sites with 9 bytes in 2 blocks (top=1"), "top");
	ok(strstr(text, "Runtime: 4.9 KiB (5000 bytes)"), "runtime memory on request");
	ok(strstr(text, "through setlocale"), "and through what");
	ok(strstr(text, "in _start"), "all frames on request");
	free(text);
	unmake(&made);

	judge(&made, fake, "min_bytes=1k", "");
	text = text_of(&made);
	ok(strstr(text, "Not listed: 4 more sites with 324 bytes in 6 blocks"), "min_bytes");
	ok(strstr(text, "SUMMARY: LeakWatch: 2000324 byte(s)"), "counts all the same");
	free(text);
	unmake(&made);
}

static void test_silence(void)
{
	struct fake fake = fake_new();
	struct made made;
	char *text;

	judge(&made, &fake, "", "");
	ok(!report_has_news(&made.report), "nothing held: nothing to say");
	text = text_of(&made);
	ok(strstr(text, "leaked nothing") &&
			strstr(text, "SUMMARY: LeakWatch: 0 byte(s) leaked in 0 "),
		"unless asked");
	free(text);
	unmake(&made);
	fake.header->dropped[LW_DROP_BLOCKS] = 1;
	judge(&made, &fake, "", "");
	ok(report_has_news(&made.report), "a block that was not recorded is something to say");
	unmake(&made);
	fake_free(&fake);
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *words(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_t *json_of(struct made *made)
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

static void check_json(const json_t *tree)
{
	const json_t *sites = json_object_get(tree, "sites"),
		     *summary = json_object_get(tree, "summary");
	const json_t *first = json_array_get(sites, 0), *frames = json_object_get(first, "frames");
	const json_t *mismatch = json_array_get(json_object_get(tree, "mismatches"), 0);
	const json_t *error = json_array_get(json_object_get(tree, "errors"), 0);

	is_u64(number(tree, "schema"), 1, "schema");
	is_u64(number(tree, "pid"), 4242, "pid");
	is_str(words(tree, "state"), "exit", "state");
	is_u64(json_array_size(json_object_get(tree, "cmdline")), 2, "arguments");
	is_u64(number(summary, "live_bytes"), 2005324, "live bytes");
	is_u64(number(summary, "leaked_blocks"), 26, "leaked blocks");
	is_u64(number(summary, "total_allocs"), 47, "allocations");
	is_u64(number(summary, "dropped"), 2, "dropped");
	is_u64(json_array_size(sites), 6, "sites, runtime among them");
	is_str(words(first, "verdict"), "unfreed", "the worst first");
	is_str(words(json_array_get(sites, 5), "verdict"), "runtime", "the runtime's last");
	is_u64(number(first, "bytes"), 2000000, "bytes");
	is_u64(number(first, "total_blocks"), 40, "blocks in all");
	is_u64(number(json_object_get(first, "hint"), "line"), 41, "hint");
	is_u64(json_array_size(frames), 5, "the whole stack, inlined frames expanded");
	ok(json_is_true(json_object_get(json_array_get(frames, 0), "inlined")),
		"the first is inlined");
	ok(json_is_false(json_object_get(json_array_get(frames, 1), "inlined")),
		"the second is not");
	is_str(words(json_array_get(frames, 1), "function"), "work(int)", "function");
	is_str(words(json_array_get(frames, 1), "offset"), "0x1ff", "offset");
	is_str(words(json_array_get(frames, 1), "build_id"), "aaaaaaaa", "build id");
	ok(!json_object_get(json_array_get(sites, 1), "hint"), "no hint where there is none");
	ok(!json_object_get(json_array_get(sites, 1), "oldest_s"), "no age where it is unknown");
	is_str(words(json_array_get(json_object_get(json_array_get(sites, 3), "frames"), 0),
		       "function"),
		"evil\033[2J\xef\xbf\xbd", "a byte that is no UTF-8 is replaced");
	is_str(words(mismatch, "alloc_kind"), "new", "mismatch: allocated");
	is_str(words(mismatch, "free_kind"), "free", "released");
	is_u64(number(mismatch, "count"), 3, "how often");
	is_u64(json_array_size(json_object_get(mismatch, "free_frames")), 3, "where");
	is_str(words(error, "what"), "unknown-free", "error");
	ok(!json_object_get(error, "alloc_frames"), "nothing known about its allocation");
}

static void test_json(const struct fake *fake)
{
	struct made made;
	json_t *tree;

	judge(&made, fake, "", "");
	tree = json_of(&made);
	check_json(tree);
	json_decref(tree);
	unmake(&made);
}

static void test_format(void)
{
	char out[FORMAT_BYTES], shown[8];

	is_str(format_bytes(out, 0), "0 bytes", "no byte");
	is_str(format_bytes(out, 1), "1 byte", "one byte");
	is_str(format_bytes(out, 1023), "1023 bytes", "just under a KiB");
	is_str(format_bytes(out, 1024), "1.0 KiB (1024 bytes)", "a KiB");
	is_str(format_bytes(out, 1048575), "1.0 MiB (1048575 bytes)", "never 1024.0 KiB");
	is_str(format_bytes(out, UINT64_MAX), "16.0 EiB (18446744073709551615 bytes)", "the most");
	is_str(format_ns(out, 12300000), "12 ms", "milliseconds");
	is_str(format_ns(out, 999900000), "1.0 s", "never 1000 ms");
	is_str(format_ns(out, UINT64_C(125) * 1000000000), "2 min 5 s", "minutes");
	is_str(format_ns(out, UINT64_C(90061) * 1000000000), "1 d 1 h", "days");
	is_str(format_text(shown, sizeof(shown), "a\033b"), "a?b",
		"no escape reaches the terminal");
	is_str(format_text(shown, sizeof(shown), "abcdefghij"), "abcd...", "long texts are cut");
}

/* Three sites of one process: growing, freed by exit, and filled. Then the same, killed. */
static struct fake make_grown(void)
{
	static const struct fake_frame first[] = {{0x200, 0}}, second[] = {{0x300, 0}}, third[] = {{0x700, 0}};
	struct fake fake = fake_new();

	fake_module(&fake, "/opt/app", 0x400000, 0);
	fake_site(&fake, LW_KIND_MALLOC, first, 1);
	fake_site(&fake, LW_KIND_MALLOC, second, 1);
	fake_site(&fake, LW_KIND_MALLOC, third, 1);
	for (uint32_t i = 0; i < 48; i++)
		fake_sample(&fake, i, 50 + 50 * i, 4,
			(uint64_t[]){0, UINT64_C(1024) * (i + 1), 4096 * i, 512 * (i < 20 ? i : 20)});
	*fake_count(&fake, 0, 1) = (struct lw_count){50176, 49, 0, 0};
	*fake_count(&fake, 0, 2) = (struct lw_count){200000, 200, 200000, 200};
	*fake_count(&fake, 0, 3) = (struct lw_count){10240, 20, 0, 0};
	fake.header->exit_began_ms = 2450;
	fake_held(&fake, 1, 50176, 49);
	fake_held(&fake, 2, 200000, 200);
	fake_held(&fake, 3, 10240, 20);
	return fake;
}

static void test_trends(void)
{
	struct fake fake = make_grown();
	struct made made;
	char *text;

	setenv("LC_ALL", "C", 1);
	judge(&made, &fake, "", "");
	made.report.left_bytes = 1 << 30;
	text = text_of(&made);
	is_u64(made.report.nr_leak_sites, 2, "two sites that grew");
	is_u64(made.report.leaked.blocks, 49, "what exit freed is not leaked, nor what stopped");
	is_u64(made.report.reachable.blocks, 20, "which is counted with what is reachable");
	is_u64(made.report.held.blocks, 200, "but counted by itself");
	ok(strstr(text, " leaked 49.0 KiB (50176 bytes) in 49 blocks, from 1 site; 1 site grew and was "
			"freed only by exit\n"),
		"the conclusion");
	ok(strstr(text, "\nGrowing: 49.0 KiB (50176 bytes) in 49 blocks, 100% of all\n"), "growing");
	ok(strstr(text, "  growing: +20.0 KiB/s for 2.4 s, p < 0.000001, not levelling off; at this rate "
			"the 1.0 GiB left run out in 14 h 33 min\n  |_"),
		"why, and what it means");
	ok(strstr(text, "##|\n"), "how it looks");
	ok(strstr(text, "\nHeld: 195.3 KiB (200000 bytes) in 200 blocks\n"), "held");
	ok(strstr(text, "; freed only after exit began"), "why");
	ok(strstr(text, "\n  bounded: grew by 10.0 KiB until 1.0 s after the start, flat since\n"),
		"bounded, and why");
	ok(!strstr(text, "none was ever freed, first seen 2.4 s ago\n  held"), "held blocks were freed");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	unmake(&made);

	fake.header->exit_began_ms = 0;
	judge(&made, &fake, "", "");
	is_u64(made.report.nr_leak_sites, 1, "exit not noted: only what is there");
	is_str(made.report.nr_sites ? verdict_name(made.report.sites[0].verdict) : "", "growing",
		"still growing");
	unmake(&made);
	fake_free(&fake);
}

/* A scan splits a site: what is lost, what only that points to, the rest. */
static void test_scan(void)
{
	struct fake fake = make_grown();
	struct lw_scan_site *found = fake_at(&fake, &fake.header->scans, 3);
	struct made made;
	char *text;

	*found = (struct lw_scan_site){.lost_bytes = 512, .lost_blocks = 1, .indirect_bytes = 1024,
		.indirect_blocks = 2, .dragged_bytes = 1024, .dragged_blocks = 2};
	found = fake_at(&fake, &fake.header->scans, 1);
	*found = (struct lw_scan_site){.lost_bytes = 50000, .lost_blocks = 48};
	memset(fake.header->samples, 0, sizeof(fake.header->samples)); /* no past */
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->exit_began_ms = 0;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	is_u64(made.report.nr_sites, 5, "five parts of two sites");
	is_u64(made.report.lost.blocks, 49, "lost");
	is_u64(made.report.indirect.blocks, 2, "lost indirectly");
	is_u64(made.report.reachable.blocks, 18, "reachable");
	is_u64(made.report.leaked.bytes, 50000 + 512 + 1024, "only what is lost is leaked");
	ok(strstr(text, "drags along 1.0 KiB (1024 bytes) in 2 blocks"), "what it drags along");
	ok(strstr(text, "\nStill reachable, so not counted as leaked: 8.7 KiB (8880 bytes) in 18 blocks, from 2 sites\n"),
		"the rest, in few words");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	unmake(&made);

	fake.header->scan.state = LW_SCAN_FAILED;
	fake.header->scan.why = LW_SCAN_WHY_TIME;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	is_u64(made.report.nr_leak_sites, 2, "without a scan all counts");
	ok(strstr(text, "Not known what is lost: the search for pointers was not finished: the time limit was reached"),
		"and why there is none is said");
	free(text);
	unmake(&made);

	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.seq = 3;
	judge(&made, &fake, "", "");
	is_u64(made.report.nr_leak_sites, 2, "half written results are not believed");
	unmake(&made);
	fake_free(&fake);
}

/* Whatever the past says of a site: what the scan saw is summed up by that, and nothing is listed twice. */
static void test_reachability(void)
{
	struct fake fake = make_grown();
	struct lw_scan_site *found = fake_at(&fake, &fake.header->scans, 1);
	struct lw_chain *chains = fake_at(&fake, &fake.header->chains, 0);
	struct made made;
	char *text, *at;
	json_t *tree;

	*found = (struct lw_scan_site){.lost_bytes = 50000, .lost_blocks = 48};
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->exit_began_ms = 0;
	*fake_count(&fake, 0, 2) = (struct lw_count){256, 1, 0, 0};
	for (uint32_t i = 0; i < 48; i++)
		fake_sample(&fake, i, 50 + 50 * i, 4, (uint64_t[]){0, UINT64_C(1024) * (i + 1), 256, 512 * (i < 20 ? i : 20)});
	fake_hint(&fake, 2, "src/few.c", 12);
	chains[0] = (struct lw_chain){.site = 1, .root = LW_ROOT_UNKNOWN, .address = 0x1000, .bytes = 50};
	chains[1] = (struct lw_chain){.site = 1, .root = LW_ROOT_MEMORY, .address = 0x2000, .bytes = 50, .root_at = 0x3000};
	for (int i = 0; i < 2; i++)
		chains[i].place.module = chains[i].type.module = LW_NO_MODULE;
	fake.header->scan.nr_chains = 2;
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "example 0x000000001000,") && !strstr(text, "not found again"),
		"an example that may be lost is held by nothing");
	ok(strstr(text, "held by memory of the program's own at 0x3000"), "one that is not is held by what it is");
	ok(strstr(text, "\nGrowing: 49.0 KiB (50176 bytes) in 49 blocks"), "a site that grows is called that");
	ok(strstr(text, "nothing points to 48.8 KiB (50000 bytes) in 48 blocks any more"), "though most of it is lost");
	ok(strstr(text, "; still reachable: 10.4 KiB (10672 bytes) in 22 blocks (searched"),
		"the rest of it, what stopped growing, and what never did");
	ok(strstr(text, "\nStill reachable, so not counted as leaked: 256 bytes in 1 block, from 1 site\n"),
		"the list is of the last alone");
	at = strstr(text, "Bounded: 10.0 KiB");
	ok(at && !strstr(at + 10, "10.0 KiB (10240") && strstr(text, "10.0 KiB (10240") == at + 9,
		"what stopped growing is listed once");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	tree = json_of(&made);
	is_u64(number(json_object_get(tree, "summary"), "reachable_bytes"), 10672, "the same in JSON");
	json_decref(tree);
	unmake(&made);
	judge(&made, &fake, "min_bytes=1k:show=all", "");
	text = text_of(&made);
	ok(strstr(text, "from 1 site\n  and 1 more site with 256 bytes in 1 block (min_bytes=1024)\n"),
		"below min_bytes it is summed up");
	free(text);
	unmake(&made);
	fake_free(&fake);
}

/* A place the program has told is shown where there is no debug information; an age is never more than the run. */
static void test_examples(void)
{
	static const struct fake_frame bare[] = {{0x700, 0}};
	struct fake fake = fake_new();
	struct lw_chain *chains = fake_at(&fake, &fake.header->chains, 0);
	uint32_t lost, kept;
	struct made made;
	char *text;
	json_t *tree, *sites;

	fake_module(&fake, "/opt/app", 0x400000, 0);
	lost = fake_site(&fake, LW_KIND_MALLOC, bare, 1);
	kept = fake_site(&fake, LW_KIND_CALLOC, bare, 1);
	*fake_count(&fake, 0, lost) = (struct lw_count){100, 2, 0, 0};
	*fake_count(&fake, 0, kept) = (struct lw_count){300, 1, 0, 0};
	fake_hint(&fake, kept, "src/kept.c", 7);
	*(struct lw_scan_site *)fake_at(&fake, &fake.header->scans, lost) =
		(struct lw_scan_site){.lost_bytes = 100, .lost_blocks = 2};
	chains[0] = (struct lw_chain){.site = lost, .root = LW_ROOT_NONE, .address = 0x1000, .bytes = 50, .age_ms = 9000};
	chains[1] = (struct lw_chain){.site = lost, .root = LW_ROOT_NONE, .address = 0x2000, .bytes = 50, .age_ms = 600};
	chains[0].place.module = chains[0].type.module = LW_NO_MODULE;
	chains[1].place.module = chains[1].type.module = LW_NO_MODULE;
	fake.header->scan.nr_chains = 2;
	fake.header->scan.state = LW_SCAN_DONE;
	fake.header->scan.flags = LW_SCAN_AT_EXIT;
	fake.header->scan.seq = 2;
	fake.header->scan.began_mono_ns = fake.header->started_mono_ns + UINT64_C(2600000000);
	judge(&made, &fake, "", "");
	text = text_of(&made);
	ok(strstr(text, "\n  300 bytes in 1 block at src/kept.c:7\n"), "the place a macro told");
	ok(strstr(text, "malloc, none was ever freed, oldest 2.0 s ago\n"), "age of the oldest");
	ok(strstr(text, "0x000000001000, 50 bytes, 2.0 s old\n"), "that of an example is not more");
	ok(strstr(text, "0x000000002000, 50 bytes, 500 ms old\n"), "and is counted to the same end");
	if (tap_nr_failed)
		printf("# %s\n", text);
	free(text);
	tree = json_of(&made);
	sites = json_object_get(tree, "sites");
	ok(json_real_value(json_object_get(json_array_get(json_object_get(json_array_get(sites, 0), "examples"), 0),
		   "age_s")) == json_real_value(json_object_get(json_array_get(sites, 0), "oldest_s")),
		"in JSON, too");
	json_decref(tree);
	unmake(&made);
	fake_free(&fake);
}

static void test_trend_words(void)
{
	static const struct growth_point points[] = {{0, 0}, {1, 10}, {2, 20}, {9, 70}, {10, 80}};
	char rate[TREND_RATE_BYTES], bars[SPARKLINE_BYTES], text[TREND_TEXT_BYTES];
	struct growth slow = {.kind = GROWTH_GROWING, .bytes_per_s = 0.001};
	struct trend slowing = {.growth = {.kind = GROWTH_GROWING, .bytes_per_s = 1536, .is_slowing = true, .until_s = 10}};

	is_str(trend_rate(rate, 1536), "+1.5 KiB/s", "a rate");
	is_str(trend_rate(rate, -0.1), "-6 bytes/min", "a small one");
	is_str(trend_rate(rate, 0.001), "+4 bytes/h", "a smaller one");
	is_str(trend_rate(rate, 1e300), "+7.8 EiB/s", "more than there is");
	is_str(trend_outlook(text, &slow, 1 << 30), "", "what takes ages is not said");
	is_str(trend_text(text, &slowing), "+1.5 KiB/s for 10.0 s, p < 0.000001, slowing down",
		"what slows down is not said to go on as it does");
	is_str(trend_sparkline(bars, points, 5, false), "___...,,,,,,,,,,,,,,,,,,,,,,***#",
		"bars in ASCII");
	is_u64(strlen(trend_sparkline(bars, points, 5, true)), 3 * SPARKLINE_BARS, "bars in UTF-8");
	is_str(trend_sparkline(bars, points, 0, true), "", "no bars");
}

int main(void)
{
	struct fake fake = make();

	test_trends();
	test_scan();
	test_reachability();
	test_examples();
	test_trend_words();

	test_text(&fake);
	test_silence();
	test_json(&fake);
	test_format();
	fake_free(&fake);
	return done();
}
