/* SPDX-License-Identifier: MIT */
/*
 * unit-report.c - the text report, word for word, and the JSON report, read back: order, sums,
 * suppressions, what is listed, and names that are no UTF-8 or would move a terminal's cursor.
 * What a search and the past make of a site is unit-report-verdicts.c.
 */
#include "test/unit/report.h"

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

static const char *words(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
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

	test_trend_words();

	test_text(&fake);
	test_silence();
	test_json(&fake);
	test_format();
	fake_free(&fake);
	return done();
}
