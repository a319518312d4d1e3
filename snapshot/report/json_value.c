/* SPDX-License-Identifier: MIT */
/*
 * json_value.c - texts and numbers as JSON; see json_value.h. Byte strings that are not UTF-8 (a path may be
 * anything) keep what is valid; each other byte becomes U+FFFD.
 */
#include "snapshot/report/json_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/alloc.h"

/* How many bytes a valid UTF-8 character at text has; 0: not valid. */
static size_t utf8_bytes(const unsigned char *text)
{
	size_t nr = text[0] < 0x80	 ? 1
		    : text[0] >> 5 == 6	 ? 2
		    : text[0] >> 4 == 14 ? 3
		    : text[0] >> 3 == 30 ? 4
					 : 0;
	uint32_t code = nr > 1 ? text[0] & (0x7fu >> nr) : text[0];
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	for (size_t i = 1; i < nr; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code < least[nr] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : nr;
}

json_t *value_text(const char *text)
{
	json_t *value = json_string(text);
	size_t used = 0;
	char *clean;

	if (value)
		return value;
	clean = alloc_array(strlen(text) * 3 + 1, 1);
	while (*text) {
		size_t nr = utf8_bytes((const unsigned char *)text);

		memcpy(clean + used, nr ? text : "\xef\xbf\xbd", nr ? nr : 3);
		used += nr ? nr : 3;
		text += nr ? nr : 1;
	}
	value = json_string(clean);
	free(clean);
	return value;
}

json_t *value_number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *value_hex(uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}
