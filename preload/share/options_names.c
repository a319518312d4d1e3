/* SPDX-License-Identifier: MIT */
/* options_names.c - options that hold patterns: which programs are followed, what a file is called. */
#include "preload/share/options_parts.h"

#include <stdio.h>
#include <string.h>

/* Shell pattern [pattern, end) with * and ?. On a mismatch the last * takes one more. */
static bool matches(const char *pattern, const char *end, const char *name)
{
	const char *star = NULL, *star_name = NULL;

	while (*name) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			star_name = name;
		} else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++star_name;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool lw_options_follows(const struct lw_options *options, const char *program)
{
	const char *p = options->follow;
	uint64_t all;

	if (lw_options_parse_bool(p, &all))
		return all;
	for (;;) {
		const char *end = p + strcspn(p, ","), *last = end;

		while (p < end && lw_options_is_blank(*p))
			p++;
		while (last > p && lw_options_is_blank(last[-1]))
			last--;
		if (last > p && matches(p, last, program))
			return true;
		if (!*end)
			return false;
		p = end + 1;
	}
}

/* A program or host name cannot lead into another folder. */
static void put_name(char *out, size_t out_bytes, size_t *used, const char *name)
{
	for (; *name; name++)
		lw_options_put(out, out_bytes, used, *name == '/' ? '_' : *name);
}

bool lw_options_expand(char *out, size_t out_bytes, const char *template_text,
	const struct lw_options_names *names)
{
	size_t used = 0;
	char number[24];

	for (const char *p = template_text; *p; p++) {
		if (*p != '%' || !p[1]) {
			lw_options_put(out, out_bytes, &used, *p);
			continue;
		}
		number[0] = '\0';
		switch (*++p) {
		case 'p':
			snprintf(number, sizeof(number), "%d", (int)names->pid);
			break;
		case 't':
			snprintf(number, sizeof(number), "%llu", (unsigned long long)names->time_s);
			break;
		case 'n':
			snprintf(number, sizeof(number), "%u", names->counter);
			break;
		case 'e':
			put_name(out, out_bytes, &used, names->program);
			break;
		case 'h':
			put_name(out, out_bytes, &used, names->host);
			break;
		default: /* what means nothing here stands for itself */
			lw_options_put(out, out_bytes, &used, '%');
			if (*p != '%')
				lw_options_put(out, out_bytes, &used, *p);
		}
		put_name(out, out_bytes, &used, number);
	}
	if (out_bytes)
		out[used < out_bytes ? used : out_bytes - 1] = '\0';
	return used < out_bytes;
}

bool lw_options_has_pid(const char *template_text)
{
	for (const char *p = template_text; *p && p[1]; p++)
		if (*p == '%' && *++p == 'p')
			return true;
	return false;
}

/* The letter behind the first % that stands for nothing; '\0': there is none. */
static char odd_letter(const char *template_text)
{
	for (const char *p = template_text; *p && p[1]; p++)
		if (*p == '%' && !strchr("petnh%", *++p))
			return *p;
	return '\0';
}

void lw_options_check_names(const struct lw_options *options, lw_options_complain_fn *emit, void *context)
{
	const struct {
		const char *name, *value;
	} files[] = {{"json", options->json}, {"log_path", options->log_path}, {"black_box", options->black_box}};
	char line[160], letter;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		letter = odd_letter(files[i].value);
		if (!letter)
			continue;
		snprintf(line, sizeof(line),
			"leakwatch: %s: %%%c stands for nothing in a file name, kept as it is (%%p, %%e, %%h, %%t, %%n, %%%%)",
			files[i].name, letter >= ' ' && letter <= '~' ? letter : '?');
		emit(context, line);
	}
}
