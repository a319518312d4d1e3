/* SPDX-License-Identifier: MIT */
/* unit-lines.c - amounts, ages, trends and rows as text; no line is wider than asked for. */
#include "test/unit/tap.h"

#include <math.h>

#include "snapshot/view/lines.h"

static void test_amounts(void)
{
	static const struct {
		double amount;
		bool is_signed;
		const char *text;
	} table[] = {{0, false, "0"}, {0, true, "0"}, {1023, false, "1.0K"}, {999, false, "999"}, {1536, false, "1.5K"},
		{1536, true, "+1.5K"}, {-1536, true, "-1.5K"}, {-3, false, "-3"}, {102400, false, "100K"},
		{12.3 * 1024 * 1024, false, "12.3M"}, {1e30, false, "867361737988E"}};
	char out[16];

	for (size_t i = 0; i + 1 < sizeof(table) / sizeof(table[0]); i++)
		is_str(lines_amount(out, table[i].amount, table[i].is_signed), table[i].text, "%.0f", table[i].amount);
	for (double amount = 1; amount < 1e18; amount *= 1.37) {
		size_t width = strlen(lines_amount(out, amount, true));

		if (width > 6)
			is_u64(width, 6, "width of %s", out);
	}
	is_str(lines_age(out, 5400), "5s", "age");
	is_str(lines_age(out, 3600 * 1000), "60m", "age");
	is_str(lines_age(out, UINT64_MAX), "-", "unknown age");
}

static size_t columns(const char *text)
{
	size_t nr = 0;

	for (; *text; text++)
		nr += ((unsigned char)*text & 0xc0) != 0x80;
	return nr;
}

static struct lines_row make_row(void)
{
	struct lines_row row = {.bytes = 3 << 20,
		.blocks = 77,
		.share = 0.253,
		.change_bytes = 2048,
		.since_bytes = -300,
		.bytes_per_s = 1.5,
		.oldest_ms = 61000,
		.verdict = "growing",
		.function = "cache::insert(int)",
		.file = "/src/deep/cache.cc",
		.line = 41,
		.nr_trend = 6};

	for (size_t i = 0; i < row.nr_trend; i++)
		row.trend[i] = 100 + i;
	return row;
}

static void test_rows(void)
{
	struct lines_style style = {.width = 100, .sort = "blocks"};
	struct lines_row row = make_row();
	char line[LINES_BYTES];

	lines_row(line, &row, &style);
	is_str(line, "  3.0M     77  25  +2.0K   -300     +2 _.-=*#  61s growing   cache::insert(int) cache.cc:41", "a row");
	row.has_lost = true;
	lines_row(line, &row, &style);
	ok(strstr(line, " growing!  cache::insert"), "a mark where some of it is lost");
	row.verdict = "lost";
	lines_row(line, &row, &style);
	ok(strstr(line, " lost      cache::insert"), "but for the verdict that says so");
	row = make_row();
	row.change_bytes = row.bytes_per_s = NAN;
	lines_row(line, &row, &style);
	is_str(line, "  3.0M     77  25      -   -300      - _.-=*#  61s growing   cache::insert(int) cache.cc:41",
		"what is not known yet is no 0");
	row = make_row();
	lines_heading(line, &style);
	is_str(line, "  HELD  >BLKS   %   TICK  SINCE  SLP/s TREND   OLD VERDICT   WHERE", "the sorted column is marked");
	style.has_exact = true;
	style.width = 200;
	lines_row(line, &row, &style);
	ok(strstr(line, "       3145728 "), "exact bytes");
	style = (struct lines_style){.width = 80, .has_utf8 = true};
	row.function = "evil\033[2Jname\nnext";
	lines_row(line, &row, &style);
	ok(!strchr(line, '\033') && !strchr(line, '\n'), "control characters of a name are not passed on");
	is_u64(columns(line), 80, "80 columns, though the trend has more bytes");
	row.function = row.file = row.verdict = row.module = NULL;
	row.nr_trend = 0;
	lines_row(line, &row, &style);
	ok(strstr(line, "?"), "nothing known");
}

static void test_widths(void)
{
	struct lines_row row = make_row();
	struct lines_head head = {.pid = 4194304, .program = "/a/very/long/name/of/a/program/that/goes/on", .how = "[live]",
		.bytes = UINT64_MAX, .blocks = UINT64_MAX, .peak_bytes = UINT64_MAX, .rss_bytes = UINT64_MAX,
		.age_ns = UINT64_MAX, .since_bytes = INT64_MIN, .nr_dropped = 1, .nr_lost = 2, .nr_mismatches = 3};
	char line[LINES_BYTES], name[600];
	int nr_wide = 0;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	row.function = name;
	for (unsigned width = 40; width <= LINES_WIDTH; width++) {
		struct lines_style style = {.width = width, .has_utf8 = width % 2, .has_exact = width % 3 == 0};

		lines_row(line, &row, &style);
		nr_wide += columns(line) > width;
		lines_heading(line, &style);
		nr_wide += columns(line) > width;
		for (unsigned i = 0; i < LINES_HEADS; i++) {
			lines_head(line, &head, &style, i);
			nr_wide += columns(line) > width;
		}
	}
	is_u64(nr_wide, 0, "no line is wider than asked for, whatever is in it");
}

int main(void)
{
	test_amounts();
	test_rows();
	test_widths();
	return done();
}
