/* SPDX-License-Identifier: MIT */
/* Memory that libc allocates for its caller, who loses it; and some that is given back. */
#include <glob.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "victim.h"

FRAME static void copy_text(void)
{
	hold(strdup("a text of 24 characters"));
}

FRAME static void copy_wide(void)
{
	hold(wcsdup(L"wide"));
}

FRAME static void cut_text(void)
{
	hold(strndup("twenty-three", 6));
}

FRAME static void write_label(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) > 0)
		hold(text);
	va_end(ap);
}

FRAME static void collect_text(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	for (int i = 0; i < 50; i++)
		fprintf(stream, "%d,", i);
	fclose(stream);
	hold(text);
}

FRAME static void read_record(FILE *from)
{
	char *line = NULL;
	size_t room = 0;

	if (getdelim(&line, &room, ';', from) > 0)
		hold(line);
}

FRAME static void find_home(void)
{
	hold(realpath("/usr/../usr/bin", NULL));
}

FRAME static void match_names(void)
{
	glob_t found;

	if (!glob("/proc/self/stat*", 0, NULL, &found))
		hold(found.gl_pathv);
}

FRAME static void give_back(void)
{
	regex_t pattern;
	glob_t found;
	char *text = NULL;

	if (!regcomp(&pattern, "^a(b|c)*d$", REG_EXTENDED))
		regfree(&pattern);
	if (!glob("/proc/self/st*", 0, NULL, &found))
		globfree(&found);
	if (asprintf(&text, "%d", 12) > 0)
		free(text);
	free(hold(realpath("/usr", NULL)));
}

int main(void)
{
	static char records[] = "one;two;three";
	FILE *from = fmemopen(records, sizeof(records) - 1, "r");

	copy_text();
	copy_wide();
	cut_text();
	write_label("%s %d", "label", 9);
	collect_text();
	read_record(from);
	find_home();
	match_names();
	give_back();
	fclose(from);
	puts("copied");
	return 0;
}
