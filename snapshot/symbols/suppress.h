/* SPDX-License-Identifier: MIT */
/*
 * suppress.h - sites a person has said not to be shown, in LeakSanitizer's syntax.
 *
 * A line is `leak:PATTERN`. It takes a site out when PATTERN is found in the function, the file or
 * the module of any of its frames: `*` stands for any text, `^` at the beginning and `$` at the end
 * anchor it. Lines that start with # are comments. Other lines are counted and ignored.
 */
#ifndef LW_SNAPSHOT_SUPPRESS_H
#define LW_SNAPSHOT_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct suppress_rule {
	char *pattern;
	uint64_t nr_sites, nr_blocks, nr_bytes; /* what it took out */
};

struct suppress {
	struct suppress_rule *rules;
	size_t nr_rules, max_rules;
};

/* A text in the pattern's language? Pure. */
bool suppress_matches(const char *pattern, const char *text);

/*
 * Adds the rules of a text. The number of lines that are none, and in *first_bad the number of the
 * first such line, from 1.
 */
size_t suppress_parse(
	struct suppress *suppress, const char *text, size_t nr_bytes, size_t *first_bad);

/* The same from a file; -errno when it cannot be read. *nr_bad as above. */
int suppress_read(struct suppress *suppress, const char *path, size_t *nr_bad, size_t *first_bad);

/* The first rule that one of the three names matches, or NULL. Any may be NULL. */
struct suppress_rule *suppress_find(
	struct suppress *suppress, const char *function, const char *file, const char *module);

void suppress_fini(struct suppress *suppress);

#endif
