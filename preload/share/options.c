/* SPDX-License-Identifier: MIT */
/*
 * options.c - the text that fills the settings in; their table is in options_table.c.
 *
 * Runs inside the target before main: no allocation, no stdio stream, no locale (so digits are read
 * here, not by strtoul, and patterns are matched here, not by fnmatch). All state lives in the
 * caller's struct and on the stack, about 3 KiB of it.
 *
 * A setting is key=value. A value that starts with a quote is one or more quoted pieces that touch
 * ('a b'"it's" is `a bit's`), so that any value can be written; an unquoted one ends at ':' or a
 * blank. The text comes from the environment and may be anything: what does not parse costs one
 * complaint and reading goes on at the next ':' or blank. Complaints are counted per text, and
 * after MAX_COMPLAINTS one last line says that the rest was left out, so that garbage cannot flood
 * the target's terminal. What a complaint quotes is cut and made printable for the same reason.
 */
#include "preload/share/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "preload/share/options_parts.h"

enum {
	MAX_COMPLAINTS = 8,
	KEY_BYTES = 32,	  /* longest key looked up; longer ones are unknown and shown cut */
	SHOWN_BYTES = 48, /* of a bad value */
	LINE_BYTES = 320,
};

/* ---- complaints ---- */

struct complaints {
	const char *origin;
	lw_options_complain_fn *complain; /* may be NULL */
	void *context;
	unsigned nr_made;
	uint32_t unknown[MAX_COMPLAINTS]; /* hashes of the unknown keys named, each is named once */
	unsigned nr_unknown;
};

/* Copies at most out_bytes - 1 of text; '?' for what is not printable ASCII, dots if cut. */
static const char *printable(char *out, size_t out_bytes, const char *text)
{
	size_t n = 0;

	for (; text[n] && n + 1 < out_bytes; n++)
		out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	out[n] = '\0';
	if (text[n])
		memcpy(out + n - 3, "...", 3);
	return out;
}

__attribute__((format(printf, 2, 3))) static void complain(
	struct complaints *to, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;
	int n;

	if (to->nr_made > MAX_COMPLAINTS || !to->complain)
		return;
	n = snprintf(line, sizeof(line), "leakwatch: %.64s: ", to->origin);
	if (to->nr_made++ == MAX_COMPLAINTS) {
		snprintf(line + n, sizeof(line) - (size_t)n, "further complaints left out");
	} else {
		va_start(ap, fmt);
		vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
		va_end(ap);
	}
	to->complain(to->context, line);
}

static void complain_unknown(struct complaints *to, const char *key)
{
	char shown[SHOWN_BYTES];
	uint32_t hash = 2166136261u;

	for (const char *p = key; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	for (unsigned i = 0; i < to->nr_unknown; i++)
		if (to->unknown[i] == hash)
			return;
	if (to->nr_unknown < MAX_COMPLAINTS)
		to->unknown[to->nr_unknown++] = hash;
	complain(to, "unknown option '%s' (help=1 lists them)",
		printable(shown, sizeof(shown), key));
}

/* ---- values ---- */

static uint64_t unit_of(char suffix)
{
	switch (suffix) {
	case 'k':
	case 'K':
		return UINT64_C(1) << 10;
	case 'm':
	case 'M':
		return UINT64_C(1) << 20;
	case 'g':
	case 'G':
		return UINT64_C(1) << 30;
	default:
		return 0;
	}
}

static bool parse_number(const char *text, enum lw_option_type type, uint64_t *out)
{
	uint64_t value = 0, unit = 1;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	if (*text && type == LW_OPTION_BYTES)
		unit = unit_of(*text++);
	else if (*text && type == LW_OPTION_SECONDS)
		unit = *text == 's' ? 1 : *text == 'm' ? 60 : *text == 'h' ? 3600 : 0, text++;
	if (*text || !unit || __builtin_mul_overflow(value, unit, &value))
		return false;
	*out = value;
	return true;
}

/* The place of `word` in "a|b|c", or -1. */
static int find_word(const char *words, const char *word)
{
	size_t bytes = strlen(word);

	for (int i = 0;; i++) {
		size_t n = strcspn(words, "|");

		if (n == bytes && !memcmp(words, word, n))
			return i;
		if (!words[n])
			return -1;
		words += n + 1;
	}
}

bool lw_options_parse_bool(const char *text, uint64_t *out)
{
	int at = find_word("0|1|no|yes|false|true|off|on", text);

	*out = at & 1;
	return at >= 0;
}

static void *field_of(struct lw_options *options, const struct lw_option_spec *spec)
{
	return (char *)options + spec->offset;
}

/* Numbers of every type; false leaves the option as it was. */
static bool store_number(
	struct lw_options *options, const struct lw_option_spec *spec, const char *value)
{
	void *field = field_of(options, spec);
	uint64_t number;

	if (spec->type == LW_OPTION_BOOL) {
		if (!lw_options_parse_bool(value, &number))
			return false;
		*(bool *)field = number;
		return true;
	}
	if (spec->type == LW_OPTION_CHOICE) {
		int at = find_word(spec->choices, value);

		if (at >= 0)
			*(uint32_t *)field = (uint32_t)at;
		return at >= 0;
	}
	if (!parse_number(value, (enum lw_option_type)spec->type, &number) || number < spec->least ||
		number > spec->most)
		return false;
	if (spec->type == LW_OPTION_U32 || spec->type == LW_OPTION_SECONDS)
		*(uint32_t *)field = (uint32_t)number;
	else
		*(uint64_t *)field = number;
	return true;
}

static bool store(struct lw_options *options, const struct lw_option_spec *spec, const char *value)
{
	size_t bytes = strlen(value) + 1;

	if (spec->type != LW_OPTION_STRING)
		return store_number(options, spec, value);
	if (bytes > spec->max_bytes)
		return false;
	memcpy(field_of(options, spec), value, bytes);
	return true;
}

/* What a good value would have been. */
static void describe_range(char *out, size_t out_bytes, const struct lw_option_spec *spec)
{
	if (spec->type == LW_OPTION_BOOL)
		snprintf(out, out_bytes, "not 0 or 1");
	else if (spec->type == LW_OPTION_CHOICE)
		snprintf(out, out_bytes, "not one of %s", spec->choices);
	else if (spec->type == LW_OPTION_STRING)
		snprintf(out, out_bytes, "longer than %u bytes", spec->max_bytes - 1u);
	else if (spec->type == LW_OPTION_SECONDS)
		snprintf(out, out_bytes, "not a time from %llu to %llu seconds, like 90, 60s, 10m or 2h",
			(unsigned long long)spec->least, (unsigned long long)spec->most);
	else if (spec->type == LW_OPTION_BYTES && spec->most != UINT64_MAX)
		snprintf(out, out_bytes, "not a number of bytes up to %lluG, like 4096, 64k or 2M",
			(unsigned long long)spec->most >> 30);
	else if (spec->most == UINT64_MAX)
		snprintf(out, out_bytes, "not a number of bytes, like 4096, 64k or 2M");
	else
		snprintf(out, out_bytes, "not a number from %llu to %llu",
			(unsigned long long)spec->least, (unsigned long long)spec->most);
}

/* What stays in force, as text. */
static void describe_value(
	char *out, size_t out_bytes, struct lw_options *options, const struct lw_option_spec *spec)
{
	void *field = field_of(options, spec);
	const char *word = spec->choices;

	switch (spec->type) {
	case LW_OPTION_STRING:
		snprintf(out, out_bytes, "'%.*s'", SHOWN_BYTES, (char *)field);
		break;
	case LW_OPTION_BOOL:
		snprintf(out, out_bytes, "%d", *(bool *)field);
		break;
	case LW_OPTION_CHOICE:
		for (uint32_t i = *(uint32_t *)field; i; i--)
			word += strcspn(word, "|") + 1;
		snprintf(out, out_bytes, "%.*s", (int)strcspn(word, "|"), word);
		break;
	case LW_OPTION_U32:
	case LW_OPTION_SECONDS:
		snprintf(out, out_bytes, "%u", *(uint32_t *)field);
		break;
	default:
		snprintf(out, out_bytes, "%llu", *(unsigned long long *)field);
	}
}

static bool set(
	struct lw_options *options, const char *key, const char *value, struct complaints *to)
{
	const struct lw_option_spec *spec = lw_options_find(key);
	char shown[SHOWN_BYTES], range[80], kept[SHOWN_BYTES + 8];

	if (!spec)
		return false;
	if (!store(options, spec, value)) {
		describe_range(range, sizeof(range), spec);
		describe_value(kept, sizeof(kept), options, spec);
		complain(to, "%s=%s: %s, using %s", key, printable(shown, sizeof(shown), value),
			range, kept);
	}
	return true;
}

void lw_options_init(struct lw_options *options)
{
	size_t nr_options;
	const struct lw_option_spec *table = lw_options_table(&nr_options);

	memset(options, 0, sizeof(*options));
	for (size_t i = 0; i < nr_options; i++)
		store(options, &table[i], table[i].fallback);
}

bool lw_options_set(struct lw_options *options, const char *key, const char *value,
	const char *origin, lw_options_complain_fn *complain_fn, void *context)
{
	struct complaints to = {.origin = origin, .complain = complain_fn, .context = context};

	if (set(options, key, value, &to))
		return true;
	complain_unknown(&to, key);
	return false;
}

/* ---- text ---- */

static bool ends_setting(char c)
{
	return !c || c == ':' || lw_options_is_blank(c);
}

/*
 * Reads a value at *text and moves *text behind it. NULL, or what is wrong with it: then the rest
 * up to the next separator is skipped.
 */
static const char *read_value(const char **text, char *out, size_t out_bytes)
{
	const char *p = *text, *wrong = NULL;
	size_t used = 0;

	while (*p == '"' || *p == '\'') {
		char quote = *p++;

		for (; *p && *p != quote; p++)
			lw_options_put(out, out_bytes, &used, *p);
		if (!*p) {
			*text = p;
			return "the quote is not closed";
		}
		p++;
	}
	if (p != *text && !ends_setting(*p))
		wrong = "text after the closing quote";
	for (; !ends_setting(*p); p++)
		lw_options_put(out, out_bytes, &used, *p);
	out[used < out_bytes ? used : out_bytes - 1] = '\0';
	*text = p;
	return wrong;
}

void lw_options_parse(struct lw_options *options, const char *text, const char *origin,
	lw_options_complain_fn *complain_fn, void *context)
{
	struct complaints to = {.origin = origin, .complain = complain_fn, .context = context};
	/* one more than any option takes, so that a longer value is refused, not cut */
	char key[KEY_BYTES + 1], value[LW_OPTION_PATH_BYTES + 1], shown[SHOWN_BYTES];
	const char *wrong;

	for (;;) {
		size_t used = 0;

		while (*text == ':' || lw_options_is_blank(*text))
			text++;
		if (!*text)
			return;
		for (; *text != '=' && !ends_setting(*text); text++)
			lw_options_put(key, sizeof(key), &used, *text);
		key[used < sizeof(key) ? used : sizeof(key) - 1] = '\0';
		printable(shown, sizeof(shown), key);
		if (*text != '=') {
			complain(&to, "'%s': no '=' and no value, ignored", shown);
			continue;
		}
		text++;
		wrong = read_value(&text, value, sizeof(value));
		if (!used)
			complain(&to, "a value without an option name, ignored");
		else if (wrong)
			complain(&to, "%s: %s, ignored", shown, wrong);
		else if (!set(options, key, value, &to))
			complain_unknown(&to, key);
	}
}
