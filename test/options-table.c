/* SPDX-License-Identifier: MIT */
/*
 * options-table.c - prints the table of options for documents: as Markdown, or as man page with --man.
 * readme-options.sh puts it into README.md and preload/leakwatch.1, and checks that it is there.
 */
#include <stdio.h>
#include <string.h>

#include "preload/share/options.h"

/* "|" ends a cell of a table, "\" and a leading "." mean something to roff. */
static void print_text(const char *text, bool is_man)
{
	for (; *text; text++) {
		if (*text == '|')
			fputs(is_man ? "|" : ", ", stdout);
		else if (is_man && *text == '\\')
			fputs("\\e", stdout);
		else if (is_man && *text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
}

static void print_values(const struct lw_option_spec *spec, bool is_man)
{
	switch (spec->type) {
	case LW_OPTION_BOOL:
		fputs("0, 1", stdout);
		break;
	case LW_OPTION_U32:
	case LW_OPTION_U64:
		printf("%llu to %llu", (unsigned long long)spec->least, (unsigned long long)spec->most);
		break;
	case LW_OPTION_BYTES:
		fputs("bytes", stdout);
		break;
	case LW_OPTION_SECONDS:
		fputs("time", stdout);
		break;
	case LW_OPTION_CHOICE:
		print_text(spec->choices, is_man);
		break;
	default:
		fputs("text", stdout);
	}
}

static void print_markdown(const struct lw_option_spec *spec)
{
	printf("| `%s` | ", spec->name);
	print_values(spec, false);
	printf(" | %s | ", spec->fallback[0] ? spec->fallback : "");
	print_text(spec->help, false);
	puts(" |");
}

static void print_man(const struct lw_option_spec *spec)
{
	printf(".TP\n\\fB%s\\fR=(", spec->name);
	print_values(spec, true);
	if (spec->fallback[0])
		printf("; default %s", spec->fallback);
	puts(")");
	print_text(spec->help, true);
	puts(".");
}

int main(int argc, char **argv)
{
	bool is_man = argc > 1 && !strcmp(argv[1], "--man");
	size_t nr;
	const struct lw_option_spec *table = lw_options_table(&nr);

	if (!is_man)
		puts("| option | values | default | meaning |\n| --- | --- | --- | --- |");
	for (size_t i = 0; i < nr; i++) {
		if (is_man)
			print_man(&table[i]);
		else
			print_markdown(&table[i]);
	}
	return 0;
}
