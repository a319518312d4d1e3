/* SPDX-License-Identifier: MIT */
/*
 * names.c - demangling, by the C++ runtime's own demangler.
 *
 * __cxa_demangle is the one that c++filt shares its source with, stable for twenty years and on
 * every machine that runs C++. It takes anything for a type name ("i" becomes "int"), so only what
 * looks like a mangled function goes there. Names are remembered by the address of the raw string:
 * string tables are merged by the linker, so a function that is inlined a thousand times has one.
 */
#include "snapshot/symbols/names.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* Longer names exist only to hurt; demangling may multiply the length. */
	MAX_MANGLED_BYTES = 1 << 16,
};

/* glibc's prefix for what it calls inside itself: `__GI_raise` is raise. */
static const char HIDDEN_ALIAS[] = "__GI_";

/* From <cxxabi.h>, which only C++ may include. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *buffer_bytes, int *status);

static bool is_mangled(const char *raw)
{
	return !strncmp(raw, "_Z", 2) || !strncmp(raw, "_GLOBAL__", 9);
}

static char *tidy(const char *raw)
{
	const char *version = strchr(raw + 1, '@');
	size_t raw_bytes = version ? (size_t)(version - raw) : strlen(raw);
	char *plain, *demangled;
	int status;

	if (raw_bytes > sizeof(HIDDEN_ALIAS) - 1 &&
		!strncmp(raw, HIDDEN_ALIAS, sizeof(HIDDEN_ALIAS) - 1)) {
		raw += sizeof(HIDDEN_ALIAS) - 1;
		raw_bytes -= sizeof(HIDDEN_ALIAS) - 1;
	}
	plain = strndup(raw, raw_bytes);
	if (!plain || raw_bytes > MAX_MANGLED_BYTES || !is_mangled(plain))
		return plain;
	demangled = __cxa_demangle(plain, NULL, NULL, &status);
	if (!demangled)
		return plain;
	free(plain);
	return demangled;
}

const char *names_tidy(struct names *names, const char *raw)
{
	char *name;

	if (!raw || !*raw)
		return NULL;
	name = table_find(&names->by_raw, (uintptr_t)raw, 0);
	if (name)
		return name;
	name = tidy(raw);
	if (name && !table_set(&names->by_raw, (uintptr_t)raw, 0, name)) {
		free(name);
		return NULL;
	}
	return name;
}

void names_fini(struct names *names)
{
	table_fini(&names->by_raw, free);
}
