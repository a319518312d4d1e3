/* SPDX-License-Identifier: MIT */
/* farewell.c - see farewell.h. */
#include "snapshot/source/farewell.h"

#include <string.h>

bool farewell_record(void *context, const struct lw_wire_head *record)
{
	const struct farewell *farewell = context;
	struct lw_wire_bye bye;

	if (record->type != LW_WIRE_BYE || record->bytes != sizeof(bye))
		return farewell->sink(farewell->context, record);
	memcpy(&bye, record, sizeof(bye));
	bye.flags |= farewell->flags;
	return farewell->sink(farewell->context, &bye.head);
}
