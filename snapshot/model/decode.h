/* SPDX-License-Identifier: MIT */
/*
 * decode.h - wire records -> model. The one decoder, for region, queue, pipe and file alike.
 *
 * Records are hostile: each field is checked against the record's own size before it is used. A
 * record that makes no sense is counted in the model and left out; only a version this program
 * does not speak ends it, since nothing after that can be trusted to mean what it seems to.
 */
#ifndef LW_SNAPSHOT_DECODE_H
#define LW_SNAPSHOT_DECODE_H

#include "snapshot/model/model.h"

struct decode {
	struct model *model;
	char why[128]; /* what ended it, for people; "" nothing did */
};

/* A lw_emit_sink_fn with a struct decode. record->bytes are readable; false: stop, see why. */
bool decode_record(void *decode, const struct lw_wire_head *record);

/*
 * Are these 16 bytes the head of a record? A reader of a stream asks before it reads the rest. NULL
 * if so, else what is wrong.
 */
const char *decode_head(const struct lw_wire_head *head);

/* After the last record: NULL when all that was announced has come, else what is missing. */
const char *decode_missing(const struct model *model);

#endif
