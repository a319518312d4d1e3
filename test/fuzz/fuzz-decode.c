/* SPDX-License-Identifier: MIT */
/*
 * fuzz-decode.c - any bytes as a stream of records: decoded, finished, judged, thrown away. For libFuzzer.
 *
 *	CC=clang meson setup build-fuzz -Db_lundef=false --buildtype=release && ninja -C build-fuzz
 *	ASAN_OPTIONS=quarantine_size_mb=8 build-fuzz/test/fuzz/fuzz-decode -max_len=8192 -runs=10000000 CORPUS
 *
 * Files written by leakwatch-snapshot --save are a good corpus. Each record is copied to memory of
 * its own size, as a message from a queue would be, so that a read past its end is seen.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/model/decode.h"
#include "snapshot/model/trend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nr_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nr_bytes)
{
	struct decode decode = {.model = model_new()};
	struct trend trend;

	while (nr_bytes >= sizeof(struct lw_wire_head)) {
		struct lw_wire_head head, *record;
		bool goes_on;

		memcpy(&head, data, sizeof(head));
		if (decode_head(&head) || head.bytes > nr_bytes)
			break;
		record = malloc(head.bytes);
		memcpy(record, data, head.bytes);
		goes_on = decode_record(&decode, record);
		free(record);
		if (!goes_on)
			break;
		data += head.bytes;
		nr_bytes -= head.bytes;
	}
	model_finish(decode.model);
	for (size_t i = 0; i < decode.model->nr_sites; i++)
		trend_judge(decode.model, &decode.model->sites[i], i % 2, &trend);
	model_free(decode.model);
	return 0;
}
