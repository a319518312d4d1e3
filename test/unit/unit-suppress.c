/* SPDX-License-Identifier: MIT */
/*
 * unit-suppress.c - patterns match what LeakSanitizer's match, and garbage in a file costs a count.
 */
#include "test/unit/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/symbols/suppress.h"

static const struct {
	const char *pattern, *text;
	bool is_match;
} matches[] = {
	{"foo", "foo", true},
	{"foo", "a foo b", true},
	{"foo", "fo", false},
	{"foo", "", false},
	{"foo", NULL, false},
	{"^foo", "foobar", true},
	{"^foo", "a foo", false},
	{"foo$", "a foo", true},
	{"foo$", "foobar", false},
	{"foo$", "foofoo", true},
	{"^foo$", "foo", true},
	{"^foo$", "foo ", false},
	{"f*o", "a frog", true},
	{"f*z", "a frog", false},
	{"^f*g$", "frog", true},
	{"^f*g$", "frogs", false},
	{"^*foo", "a foo", true},
	{"foo*$", "foobar", true},
	{"**", "x", true},
	{"*", "x", true},
	{"libz.so", "/usr/lib/libz.so.1", true},
	{"a*b*c", "xxaxxbxxcxx", true},
	{"a*b*c", "xxaxxcxxbxx", false},
	{"a$b", "a$b", true},
	{"std::vector<*>::push_back", "std::vector<int, std::allocator<int> >::push_back(int&&)",
		true},
	{"^main$", "domain", false},
};

static void test_matches(void)
{
	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++)
		ok(suppress_matches(matches[i].pattern, matches[i].text) == matches[i].is_match,
			"'%s' %s '%s'", matches[i].pattern,
			matches[i].is_match ? "is in" : "is not in",
			matches[i].text ? matches[i].text : "(nothing)");
}

/* A pattern made to be slow: 200 stars against 100 KB. */
static void test_slow_pattern(void)
{
	char pattern[402], *text = malloc(100001);
	clock_t began = clock();

	for (int i = 0; i < 400; i += 2)
		memcpy(pattern + i, "a*", 2);
	strcpy(pattern + 400, "b");
	memset(text, 'a', 100000);
	text[100000] = '\0';
	ok(!suppress_matches(pattern, text), "a hostile pattern does not match");
	ok((double)(clock() - began) / CLOCKS_PER_SEC < 2, "and takes no time");
	free(text);
}

static void test_parse(void)
{
	static const char text[] =
		"# a comment\n\nleak:one\r\n  leak:two words \nrace:three\nleak:\n"
		"\x01\x02garbage\nleak:last";
	struct suppress suppress = {0};
	size_t first_bad;

	is_u64(suppress_parse(&suppress, text, sizeof(text) - 1, &first_bad), 3,
		"three lines are no rules");
	is_u64(first_bad, 5, "the first of them");
	is_u64(suppress.nr_rules, 3, "three are");
	is_str(suppress.rules[0].pattern, "one", "the end of the line is not part of it");
	is_str(suppress.rules[1].pattern, "two words", "nor are blanks around it");
	is_str(suppress.rules[2].pattern, "last", "the last line needs no end");
	ok(suppress_find(&suppress, "f", "/src/one.c", "/lib/m.so") == &suppress.rules[0],
		"by file");
	ok(suppress_find(&suppress, NULL, NULL, "/lib/last.so") == &suppress.rules[2], "by module");
	ok(!suppress_find(&suppress, "f", NULL, NULL), "nothing matches");
	suppress_fini(&suppress);
}

static void test_read(void)
{
	char path[] = "/tmp/leakwatch-suppress-XXXXXX";
	struct suppress suppress = {0};
	size_t nr_bad, first_bad;
	int fd = mkstemp(path);

	is_u64(write(fd, "leak:x\nzzz\n", 11), 11, "a file");
	close(fd);
	is_u64(suppress_read(&suppress, path, &nr_bad, &first_bad), 0, "is read");
	is_u64(nr_bad, 1, "with its bad line");
	(void)unlink(path);
	is_u64(-suppress_read(&suppress, path, &nr_bad, &first_bad), ENOENT,
		"a missing one is not");
	is_u64(-suppress_read(&suppress, "/tmp", &nr_bad, &first_bad), EISDIR, "nor a folder");
	is_u64(-suppress_read(&suppress, "/dev/zero", &nr_bad, &first_bad), EINVAL,
		"nor an endless device");
	suppress_fini(&suppress);
}

int main(void)
{
	test_matches();
	test_slow_pattern();
	test_parse();
	test_read();
	return done();
}
