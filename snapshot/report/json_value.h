/* SPDX-License-Identifier: MIT */
/* json_value.h - values of the JSON report; new references. */
#ifndef LW_SNAPSHOT_JSON_VALUE_H
#define LW_SNAPSHOT_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

json_t *value_text(const char *text);
json_t *value_number(uint64_t value);
json_t *value_hex(uint64_t value); /* a text, "0x..." */

#endif
