/* SPDX-License-Identifier: MIT */
/* run_save.c - the records of a moment, to be looked at later or elsewhere. */
#include "snapshot/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/alloc.h"
#include "snapshot/fail.h"
#include "snapshot/report/output.h"
#include "snapshot/source/source.h"

static bool keep_record(void *file, const struct lw_wire_head *record)
{
	return fwrite(record, record->bytes, 1, file) == 1;
}

int run_save(const struct command *command)
{
	struct source_error error = {""};
	char *records = NULL;
	size_t nr_bytes = 0;
	FILE *memory = alloc_check(open_memstream(&records, &nr_bytes));
	int err;

	if (!source_pid((pid_t)command_int("save", command->what), keep_record, memory, &error))
		fail(error.text);
	if (fclose(memory))
		fail("out of memory");
	if (!strcmp(command->save, "-"))
		return fwrite(records, nr_bytes, 1, stdout) == 1 && !fflush(stdout) ? 0 : 1;
	err = output_file(command->save, OUTPUT_REPLACE, records, nr_bytes);
	free(records);
	if (err) {
		(void)snprintf(error.text, sizeof(error.text), "cannot write %s: %s", command->save,
			output_error(err));
		fail(error.text);
	}
	return 0;
}
