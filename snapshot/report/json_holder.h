/* SPDX-License-Identifier: MIT */
/* json_holder.h - the examples of an entry of the report, as JSON. */
#ifndef LW_SNAPSHOT_JSON_HOLDER_H
#define LW_SNAPSHOT_JSON_HOLDER_H

#include "snapshot/report/json_parts.h"
#include "snapshot/report/report.h"

/* An array; NULL: there are none. */
json_t *json_holders(struct report *report, const struct report_site *judged);

#endif
