/* SPDX-License-Identifier: MIT */
/*
 * suppress.c - LeakSanitizer's suppression lines, read and matched.
 *
 * The match is LeakSanitizer's: a pattern is found anywhere in the text unless ^ or $ anchor it,
 * and an empty text matches nothing. One thing is done better: a later occurrence is tried too, so
 * that `foo$` matches `foofoo`. The matcher keeps one place to come back to, the last star, hence
 * its time is bounded by the product of both lengths whatever a hostile pattern holds.
 *
 * Lines of the other sanitizers' kinds (race:, ...) may share the file; they and garbage are
 * counted for one message. A file is read up to MAX_FILE_BYTES, so that a wrong path (a device, a
 * dump) costs a message, not the memory.
 */
#include "snapshot/symbols/suppress.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/alloc.h"

enum { MAX_FILE_BYTES = 4 << 20, MAX_RULES = 65536 };

static bool is_end_anchor(const char *pattern)
{
	return pattern[0] == '$' && !pattern[1];
}

bool suppress_matches(const char *pattern, const char *text)
{
	bool is_anchored = pattern[0] == '^';
	const char *after_star, *retry;

	if (!text || !text[0])
		return false;
	pattern += is_anchored;
	/* without ^ it is as if a star stood in front */
	after_star = is_anchored ? NULL : pattern;
	retry = text;
	for (;;) {
		if (!*pattern || (is_end_anchor(pattern) && !*text))
			return true;
		if (*pattern == '*') {
			after_star = ++pattern;
			retry = text;
		} else if (*text && *pattern == *text && !is_end_anchor(pattern)) {
			pattern++;
			text++;
		} else if (after_star && *retry) {
			pattern = after_star;
			text = ++retry;
		} else {
			return false;
		}
	}
}

static void add_rule(struct suppress *suppress, const char *pattern, size_t nr_bytes)
{
	suppress->rules = alloc_grow(suppress->rules, suppress->nr_rules, &suppress->max_rules,
		sizeof(*suppress->rules));
	suppress->rules[suppress->nr_rules++] =
		(struct suppress_rule){.pattern = alloc_text(pattern, nr_bytes)};
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

/* False: neither a rule nor a comment nor an empty line. */
static bool parse_line(struct suppress *suppress, const char *line, size_t nr_bytes)
{
	static const char prefix[] = "leak:";
	const size_t prefix_bytes = sizeof(prefix) - 1;

	for (; nr_bytes && is_blank(*line); nr_bytes--)
		line++;
	while (nr_bytes && is_blank(line[nr_bytes - 1]))
		nr_bytes--;
	if (!nr_bytes || *line == '#')
		return true;
	if (nr_bytes <= prefix_bytes || memcmp(line, prefix, prefix_bytes))
		return false;
	if (memchr(line, '\0', nr_bytes) || suppress->nr_rules >= MAX_RULES)
		return false;
	add_rule(suppress, line + prefix_bytes, nr_bytes - prefix_bytes);
	return true;
}

size_t suppress_parse(
	struct suppress *suppress, const char *text, size_t nr_bytes, size_t *first_bad)
{
	size_t nr_bad = 0, nr_line = 0;
	const char *end = text + nr_bytes;

	*first_bad = 0;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		nr_line++;
		if (!parse_line(suppress, text, (size_t)(stop - text)) && !nr_bad++)
			*first_bad = nr_line;
		text = stop + 1;
	}
	return nr_bad;
}

/* At most MAX_FILE_BYTES of a regular file or pipe; the number, or -errno. */
static ssize_t read_all(int fd, char **text)
{
	size_t nr_bytes = 0, max_bytes = 0;
	ssize_t got = 1;

	*text = NULL;
	while (got > 0 && nr_bytes < MAX_FILE_BYTES) {
		*text = alloc_grow(*text, nr_bytes + 4096, &max_bytes, 1);
		got = read(fd, *text + nr_bytes, max_bytes - nr_bytes);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			nr_bytes += (size_t)got;
	}
	return got < 0 ? -errno : (ssize_t)nr_bytes;
}

int suppress_read(struct suppress *suppress, const char *path, size_t *nr_bad, size_t *first_bad)
{
	/* a FIFO nobody writes to must not hold up the end of the target */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat stat;
	ssize_t nr_bytes;
	char *text;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &stat) < 0 || S_ISCHR(stat.st_mode) || S_ISBLK(stat.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	nr_bytes = read_all(fd, &text);
	close(fd);
	if (nr_bytes >= 0)
		*nr_bad = suppress_parse(suppress, text, (size_t)nr_bytes, first_bad);
	free(text);
	return nr_bytes < 0 ? (int)nr_bytes : 0;
}

struct suppress_rule *suppress_find(
	struct suppress *suppress, const char *function, const char *file, const char *module)
{
	for (size_t i = 0; i < suppress->nr_rules; i++) {
		const char *pattern = suppress->rules[i].pattern;

		if (suppress_matches(pattern, function) || suppress_matches(pattern, file) ||
			suppress_matches(pattern, module))
			return &suppress->rules[i];
	}
	return NULL;
}

void suppress_fini(struct suppress *suppress)
{
	for (size_t i = 0; i < suppress->nr_rules; i++)
		free(suppress->rules[i].pattern);
	free(suppress->rules);
	*suppress = (struct suppress){0};
}
