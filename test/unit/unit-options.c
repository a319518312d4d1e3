/* SPDX-License-Identifier: MIT */
/*
 * unit-options.c - LEAKWATCH_OPTIONS as people type it, and as nobody should.
 *
 * Every text goes in as an exact-size heap copy, so that a sanitized build notices a read past it.
 */
#include "preload/share/options.h"

#include <stdlib.h>

#include "test/unit/tap.h"

static char lines[64][512];
static int nr_lines;

static void keep_line(void *context, const char *line)
{
	(void)context;
	if (nr_lines < 64)
		snprintf(lines[nr_lines], sizeof(lines[0]), "%s", line);
	nr_lines++;
}

static struct lw_options parse(const char *text)
{
	struct lw_options options;
	char *copy = strdup(text);

	nr_lines = 0;
	lw_options_init(&options);
	lw_options_parse(&options, copy, "LEAKWATCH_OPTIONS", keep_line, NULL);
	free(copy);
	return options;
}

static void test_defaults(void)
{
	struct lw_options options = parse("");
	size_t nr_options;
	const struct lw_option_spec *table = lw_options_table(&nr_options);

	is_u64(nr_lines, 0, "an empty text is fine");
	is_u64(options.depth, 32, "depth by default");
	is_str(options.follow, "no", "follow by default");
	is_u64(options.color, LW_COLOR_AUTO, "color by default");
	for (size_t i = 0; i < nr_options; i++) {
		nr_lines = 0;
		ok(lw_options_set(
			   &options, table[i].name, table[i].fallback, "test", keep_line, NULL) &&
				!nr_lines,
			"the default of %s is a value it takes", table[i].name);
		ok(*table[i].help && !strchr(table[i].help, '\n'), "%s has one line of help",
			table[i].name);
	}
}

static void test_good(void)
{
	struct lw_options o =
		parse("depth=64:json=/tmp/%p.json:color=never:follow=a*,b?:verbose=yes");

	is_u64(nr_lines, 0, "five good settings, no complaint");
	is_u64(o.depth, 64, "a number");
	is_str(o.json, "/tmp/%p.json", "a file name");
	is_u64(o.color, LW_COLOR_NEVER, "a choice");
	is_str(o.follow, "a*,b?", "a comma is no separator");
	ok(o.verbose, "yes is true");

	is_str(parse("json='/a b:c'").json, "/a b:c", "single quotes");
	is_str(parse("json=\"/it's\":depth=3").json, "/it's", "double quotes");
	is_str(parse("json='a'\"'\"'b c'").json, "a'b c", "quoted pieces that touch");
	is_str(parse("json=/o'brien/x").json, "/o'brien/x", "a quote inside is itself");
	is_str(parse("json=a=b").json, "a=b", "an equals sign in a value");
	is_str(parse("json=x:json=").json, "", "an empty value takes back an earlier one");
	is_u64(nr_lines, 0, "and none of them complains");
	o = parse("  depth=3 \t\n exitcode=7::top=5:");
	ok(o.depth == 3 && o.exitcode == 7 && o.top == 5 && !nr_lines,
		"blanks and empty settings between others are skipped");
	is_u64(parse("depth=3:depth=4").depth, 4, "the later one counts");

	is_u64(parse("min_bytes=64k").min_bytes, 64 << 10, "k");
	is_u64(parse("min_bytes=512K").min_bytes, 512 << 10, "K");
	is_u64(parse("min_bytes=1M").min_bytes, 1 << 20, "M");
	is_u64(parse("min_bytes=2G").min_bytes, UINT64_C(2) << 30, "G");
	is_u64(parse("min_bytes=18446744073709551615").min_bytes, UINT64_MAX, "the largest number");
	is_u64(nr_lines, 0, "without complaint");
}

static void test_one_complaint(void)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"depth=abc", "depth=abc: not a number from 1 to 128, using 32"},
		{"depth=0", "depth=0: not a number from 1 to 128, using 32"},
		{"depth=129", "depth=129: not a number from 1 to 128, using 32"},
		{"depth=", "depth=: not a number from 1 to 128, using 32"},
		{"depth=-1", "depth=-1: not a number from 1 to 128, using 32"},
		{"depth=0x20", "depth=0x20: not a number from 1 to 128, using 32"},
		{"depth=4k", "depth=4k: not a number from 1 to 128, using 32"},
		{"depth=4294967297", "depth=4294967297: not a number from 1 to 128, using 32"},
		{"depth=64:depth=x", "depth=x: not a number from 1 to 128, using 64"},
		{"exitcode=256", "exitcode=256: not a number from 0 to 255, using 0"},
		{"scan_every=10x",
			"scan_every=10x: not a time from 0 to 604800 seconds, like 90, 60s, 10m or 2h, using 0"},
		{"sample=xx", "sample=xx: not a number of bytes up to 1024G, like 4096, 64k or 2M, using 0"},
		{"min_bytes=1X",
			"min_bytes=1X: not a number of bytes, like 4096, 64k or 2M, using 0"},
		{"min_bytes=k",
			"min_bytes=k: not a number of bytes, like 4096, 64k or 2M, using 0"},
		{"min_bytes=18446744073709551616",
			"min_bytes=18446744073709551616: not a number of bytes, like 4096, 64k "
			"or 2M, using 0"},
		{"min_bytes=17179869184G",
			"min_bytes=17179869184G: not a number of bytes, like 4096, 64k or 2M, "
			"using 0"},
		{"color=blue", "color=blue: not one of auto|always|never, using auto"},
		{"color=auto|always",
			"color=auto|always: not one of auto|always|never, using auto"},
		{"color=", "color=: not one of auto|always|never, using auto"},
		{"verbose=2", "verbose=2: not 0 or 1, using 0"},
		{"foo=1", "unknown option 'foo' (help=1 lists them)"},
		{"foo=1:foo=2:foo=3", "unknown option 'foo' (help=1 lists them)"},
		{"Depth=1", "unknown option 'Depth' (help=1 lists them)"},
		{"a\x1b[31mb=1", "unknown option 'a?[31mb' (help=1 lists them)"},
		{"verbose", "'verbose': no '=' and no value, ignored"},
		{"=5", "a value without an option name, ignored"},
		{"json='/a", "json: the quote is not closed, ignored"},
		{"json=\"/a'", "json: the quote is not closed, ignored"},
		{"json='/a'b", "json: text after the closing quote, ignored"},
	};
	char want[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		parse(cases[i].text);
		snprintf(want, sizeof(want), "leakwatch: LEAKWATCH_OPTIONS: %s", cases[i].line);
		is_str(nr_lines == 1 ? lines[0] : NULL, want, "one line for case %zu", i);
	}
	is_u64(parse("depth=x:top=9").top, 9, "reading goes on behind a bad value");
	is_u64(parse("json='a'b:top=9").top, 9, "and behind a bad quote");
	is_str(parse("json='/a:top=9").json, "", "an open quote sets nothing");
}

static void test_long_texts(void)
{
	static char text[120000];
	struct lw_options o;

	memset(text, 'a', 1023 + 5);
	memcpy(text, "json=", 5);
	is_u64(strlen(parse(text).json), 1023, "the longest value is kept whole");
	text[1023 + 5] = 'a';
	o = parse(text);
	is_str(o.json, "", "one byte more is not cut but refused");
	is_str(lines[0],
		"leakwatch: LEAKWATCH_OPTIONS: "
		"json=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...:"
		" longer than 1023 bytes, using ''",
		"and said, with the value cut");

	memset(text, 'k', sizeof(text) - 1);
	parse(text);
	is_u64(nr_lines, 1, "a key of 117 KiB is one complaint");
	strcpy(text + sizeof(text) - 5, "=123");
	parse(text);
	is_u64(nr_lines, 1, "also with a value");

	for (size_t i = 0; i + 4 < sizeof(text); i += 4)
		memcpy(text + i, "d=1:", 5);
	parse(text);
	is_u64(nr_lines, 1, "an unknown key is named once, however often it stands there");
	for (size_t i = 0; i + 10 < sizeof(text); i += 10)
		snprintf(text + i, 11, "%08zx=:", i);
	parse(text);
	is_u64(nr_lines, 9, "complaints are capped");
	is_str(lines[8], "leakwatch: LEAKWATCH_OPTIONS: further complaints left out",
		"and it is said");
}

/* Garbage made of the bytes that matter to the parser: whatever it does, it ends, and is quiet. */
static void test_garbage(void)
{
	static const char bytes[] = "=:'\" \t,%adephtjson123\x01\xff*";
	char text[2048];
	uint64_t random = 88172645463325252u;
	int worst = 0;

	for (int round = 0; round < 2000; round++) {
		size_t n = (size_t)round % (sizeof(text) - 1);

		for (size_t i = 0; i < n; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			text[i] = bytes[random % (sizeof(bytes) - 1)];
		}
		text[n] = '\0';
		parse(text);
		if (nr_lines > worst)
			worst = nr_lines;
	}
	ok(worst <= 9, "2000 texts of garbage give at most 9 lines each (%d)", worst);
}

static void test_set(void)
{
	struct lw_options options;

	nr_lines = 0;
	lw_options_init(&options);
	ok(lw_options_set(&options, "depth", "5", "command line", keep_line, NULL) &&
			options.depth == 5 && !nr_lines,
		"one setting");
	ok(!lw_options_set(&options, "deep", "5", "command line", keep_line, NULL),
		"an unknown one");
	is_str(lines[0], "leakwatch: command line: unknown option 'deep' (help=1 lists them)",
		"is named with its origin");
	ok(lw_options_set(&options, "depth", "x", "command line", NULL, NULL) && options.depth == 5,
		"a bad value without anybody to tell");
}

static void test_help(void)
{
	size_t nr_options, widest = 0, nr_rows = 0;

	lw_options_table(&nr_options);
	nr_lines = 0;
	lw_options_help(keep_line, NULL);
	for (int i = 0; i < nr_lines && i < 64; i++) {
		if (strlen(lines[i]) > widest)
			widest = strlen(lines[i]);
		nr_rows += !strncmp(lines[i], "  ", 2) && lines[i][2] != ' ';
	}
	ok(widest <= 80, "help fits 80 columns (%zu)", widest);
	is_u64(nr_rows, nr_options, "each option has a row");
}

static void test_follows(void)
{
	static const struct {
		const char *follow, *program;
		bool want;
	} cases[] = {
		{"no", "no", false},
		{"yes", "x", true},
		{"0", "x", false},
		{"1", "x", true},
		{"", "x", false},
		{"", "", false},
		{",", "", false},
		{"gcc", "gcc", true},
		{"gcc", "gcc-12", false},
		{"gcc*", "gcc-12", true},
		{"*", "", true},
		{"*", "abc", true},
		{"cc?plus", "cc1plus", true},
		{"cc?plus", "ccplus", false},
		{"a,b,c", "b", true},
		{" a , b ", "b", true},
		{"a,b", "a,b", false},
		{"*.py", "x.py.py", true},
		{"a*b*c", "aXbXbXc", true},
		{"a*b*c", "aXbXbX", false},
		{"a*,*z", "buzz", true},
		{"**", "x", true},
		{"?", "", false},
		{"[a]", "a", false},
	};
	struct lw_options options;

	lw_options_init(&options);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(options.follow, sizeof(options.follow), "%s", cases[i].follow);
		ok(lw_options_follows(&options, cases[i].program) == cases[i].want,
			"follow=%s and %s", cases[i].follow, cases[i].program);
	}
	snprintf(options.follow, sizeof(options.follow), "%s",
		"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab");
	ok(!lw_options_follows(
		   &options, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		"many stars take no exponential time");
}

static void test_expand(void)
{
	struct lw_options_names names = {
		.pid = 42, .program = "a/b", .host = "h", .time_s = 7, .counter = 3};
	char out[32];

	ok(lw_options_expand(out, sizeof(out), "%p-%e-%h-%t-%n-%%-%x-%", &names),
		"a template fits");
	is_str(out, "42-a_b-h-7-3-%-%x-%", "each name in its place");
	ok(lw_options_expand(out, 3, "%p", &names), "exact fit");
	ok(!lw_options_expand(out, 2, "%p", &names), "one byte short");
	is_str(out, "4", "stays terminated");
	ok(!lw_options_expand(out, 0, "", &names), "no room at all");
	ok(lw_options_has_pid("/a/%p") && lw_options_has_pid("%%%p"), "%%p is seen");
	ok(!lw_options_has_pid("/a/%%p") && !lw_options_has_pid("%") && !lw_options_has_pid(""),
		"an escaped percent is not");
}

static void test_names(void)
{
	struct lw_options options = parse("log_path=l.%q.%p:json=%p%%x%:black_box=%");

	is_u64(nr_lines, 0, "a file name may be anything");
	lw_options_check_names(&options, keep_line, NULL);
	is_u64(nr_lines, 1, "one line for one that is odd");
	is_str(lines[0], "leakwatch: log_path: %q stands for nothing in a file name, kept as it is (%p, %e, %h, %t, %n, %%)",
		"which names the letter, and those there are");
}

int main(void)
{
	test_defaults();
	test_good();
	test_one_complaint();
	test_long_texts();
	test_garbage();
	test_set();
	test_help();
	test_follows();
	test_expand();
	test_names();
	return done();
}
