/* SPDX-License-Identifier: MIT */
/*
 * options.c - the one table of settings, and the text that fills it in.
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

enum {
	MAX_COMPLAINTS = 8,
	KEY_BYTES = 32,	  /* longest key looked up; longer ones are unknown and shown cut */
	SHOWN_BYTES = 48, /* of a bad value */
	LINE_BYTES = 320,
	HELP_COLUMN = 27, /* where the texts of help=1 start */
	HELP_WIDTH = 80,
};

/* ---- the table ---- */

#define FIELD(member) .name = #member, .offset = offsetof(struct lw_options, member)
#define STRING(member)                                                                             \
	FIELD(member), .type = LW_OPTION_STRING,                                                   \
		       .max_bytes = sizeof(((struct lw_options *)NULL)->member)
#define NUMBER(member, from, to) FIELD(member), .type = LW_OPTION_U32, .least = (from), .most = (to)
#define BOOL(member) FIELD(member), .type = LW_OPTION_BOOL, .least = 0, .most = 1
#define CHOICE(member, words) FIELD(member), .type = LW_OPTION_CHOICE, .choices = (words)

static const struct lw_option_spec table[] = {
	{STRING(json), .fallback = "",
		.help = "file for the JSON report (%p pid, %e program, %h host, %t time, %n "
			"number, %% percent); if it cannot be written, stderr says so"},
	{STRING(log_path), .fallback = "",
		.help = "file for the text report, % as in json; stderr if empty or not writable"},
	{CHOICE(report, "auto|always|never"), .fallback = "auto",
		.help = "the text report: auto writes it only when there is something to say"},
	{CHOICE(scan, "exit|never|live"), .fallback = "exit",
		.help = "search for memory nothing points to: at exit, never, or only live when asked"},
	{FIELD(scan_every), .type = LW_OPTION_SECONDS, .least = 0, .most = 604800, .fallback = "0",
		.help = "search the running process so often (60s, 10m, 2h); 0: only when asked"},
	{CHOICE(freeze, "ptrace|signal|none"), .fallback = "ptrace",
		.help = "how threads are stopped for a search: ptrace, else a real-time signal, or not"},
	{CHOICE(show, "few|all"), .fallback = "few",
		.help = "of the memory that is still pointed to, list the largest few sites or all"},
	{NUMBER(exitcode, 0, 255), .fallback = "0",
		.help = "exit status of a program that leaks; 0 leaves its own status alone"},
	{STRING(follow), .fallback = "no",
		.help = "child processes that report on stderr too: yes, no, or patterns of "
			"program names (* and ?) with commas between; a file name with %p "
			"serves them all"},
	{STRING(suppressions), .fallback = "",
		.help = "file of leak:PATTERN lines, as LeakSanitizer reads it; bad lines "
			"are named"},
	{.name = "min_bytes",
		.offset = offsetof(struct lw_options, min_bytes),
		.type = LW_OPTION_BYTES,
		.least = 0,
		.most = UINT64_MAX,
		.fallback = "0",
		.help = "sites holding fewer bytes (k, M, G allowed) are summed up, not listed"},
	{NUMBER(top, 0, 1000000), .fallback = "100",
		.help = "sites listed in the text report, the worst first; 0 lists all"},
	{NUMBER(depth, 1, 128), .fallback = "32",
		.help = "stack frames kept for each allocation; deeper stacks are marked as cut"},
	{NUMBER(max_sites, 1024, 1048576), .fallback = "262144",
		.help = "different call stacks there is room for; events past it are counted as "
			"one unknown site, and the report says how many"},
	{BOOL(full_stacks), .fallback = "0",
		.help = "show the innermost frames in libc, libstdc++ and LeakWatch too"},
	{BOOL(runtime), .fallback = "0",
		.help = "list the lasting memory of the C and C++ libraries themselves too"},
	{CHOICE(color, "auto|always|never"), .fallback = "auto",
		.help = "colours; auto means on a terminal, unless NO_COLOR is set"},
	{STRING(programs), .fallback = "",
		.help = "folder of leakwatch-snapshot and leakwatch-cleaner; empty means beside "
			"the library; without them the report has no names"},
	{STRING(black_box), .fallback = "",
		.help = "file (% as in json) that holds the tables while the program runs, and "
			"outlives it even when its container goes; `leakwatch-snapshot FILE` "
			"reports from it; reserves 27 MiB of disk; falls back to shared memory"},
	{BOOL(stay), .fallback = "0",
		.help = "the launcher stays as the program's parent, reaps, forwards signals, and "
			"reports when the program is killed: for process 1 of a container"},
	{BOOL(verbose), .fallback = "0", .help = "say on stderr what LeakWatch does and why"},
	{BOOL(help), .fallback = "0", .help = "write this list to stderr and run on"},
};

const struct lw_option_spec *lw_options_table(size_t *nr_options)
{
	*nr_options = sizeof(table) / sizeof(table[0]);
	return table;
}

static const struct lw_option_spec *find_spec(const char *key)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].name, key))
			return &table[i];
	return NULL;
}

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

static bool parse_bool(const char *text, uint64_t *out)
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
		if (!parse_bool(value, &number))
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
	const struct lw_option_spec *spec = find_spec(key);
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
	memset(options, 0, sizeof(*options));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
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

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_setting(char c)
{
	return !c || c == ':' || is_blank(c);
}

/* Appends a byte while there is room; the length counts on, so that the caller sees what is lost.
 */
static void put(char *out, size_t out_bytes, size_t *used, char c)
{
	if (*used + 1 < out_bytes)
		out[*used] = c;
	++*used;
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
			put(out, out_bytes, &used, *p);
		if (!*p) {
			*text = p;
			return "the quote is not closed";
		}
		p++;
	}
	if (p != *text && !ends_setting(*p))
		wrong = "text after the closing quote";
	for (; !ends_setting(*p); p++)
		put(out, out_bytes, &used, *p);
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

		while (*text == ':' || is_blank(*text))
			text++;
		if (!*text)
			return;
		for (; *text != '=' && !ends_setting(*text); text++)
			put(key, sizeof(key), &used, *text);
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

/* ---- help ---- */

/* How much of text goes on one line of `room` columns: up to the last blank that fits. */
static size_t line_length(const char *text, size_t room)
{
	size_t n = strlen(text);

	if (n <= room)
		return n;
	for (n = room; n && text[n] != ' '; n--)
		;
	return n ? n : room;
}

static void help_option(
	const struct lw_option_spec *spec, lw_options_complain_fn *emit, void *context)
{
	static const char *const placeholder[] = {[LW_OPTION_BOOL] = "0|1",
		[LW_OPTION_U32] = "N",
		[LW_OPTION_U64] = "N",
		[LW_OPTION_BYTES] = "BYTES",
		[LW_OPTION_STRING] = "TEXT",
		[LW_OPTION_SECONDS] = "TIME"};
	char left[HELP_COLUMN + 16], range[48] = "", text[512], line[HELP_WIDTH + 1];
	const char *p = text;

	snprintf(left, sizeof(left), "  %s=%s", spec->name,
		spec->choices ? spec->choices : placeholder[spec->type]);
	if (spec->type == LW_OPTION_U32)
		snprintf(range, sizeof(range), "%llu to %llu, ", (unsigned long long)spec->least,
			(unsigned long long)spec->most);
	snprintf(text, sizeof(text), "%s (%sdefault %s)", spec->help, range,
		*spec->fallback ? spec->fallback : "empty");
	do {
		/* a long left side pushes the first line's text to the right */
		size_t column = strlen(left) < HELP_COLUMN ? HELP_COLUMN : strlen(left) + 1;
		size_t n = line_length(p, HELP_WIDTH - column);

		snprintf(line, sizeof(line), "%-*s%.*s", (int)column, left, (int)n, p);
		emit(context, line);
		left[0] = '\0';
		p += n + (p[n] == ' ');
	} while (*p);
}

void lw_options_help(lw_options_complain_fn *emit, void *context)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		help_option(&table[i], emit, context);
}

/* ---- names ---- */

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

	if (parse_bool(p, &all))
		return all;
	for (;;) {
		const char *end = p + strcspn(p, ","), *last = end;

		while (p < end && is_blank(*p))
			p++;
		while (last > p && is_blank(last[-1]))
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
		put(out, out_bytes, used, *name == '/' ? '_' : *name);
}

bool lw_options_expand(char *out, size_t out_bytes, const char *template_text,
	const struct lw_options_names *names)
{
	size_t used = 0;
	char number[24];

	for (const char *p = template_text; *p; p++) {
		if (*p != '%' || !p[1]) {
			put(out, out_bytes, &used, *p);
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
			put(out, out_bytes, &used, '%');
			if (*p != '%')
				put(out, out_bytes, &used, *p);
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
