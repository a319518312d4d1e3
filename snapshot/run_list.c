/* SPDX-License-Identifier: MIT */
/* run_list.c - the watched processes of this user, a line each. */
#include "snapshot/run.h"

#include <stdio.h>

#include "snapshot/fail.h"
#include "snapshot/model/state.h"
#include "snapshot/report/format.h"
#include "snapshot/source/source.h"

static void print_process(void *context, const struct source_process *process)
{
	const char *end = state_end_of(process->end_kind, process->is_gone ? LW_BYE_GONE : 0);
	char uptime[FORMAT_BYTES], held[FORMAT_BYTES], exe[256];

	if (!*(bool *)context)
		printf("%7s  %-12s  %-24s  %s\n", "PID", "UPTIME", "HELD", "PROGRAM");
	*(bool *)context = true;
	printf("%7d  %-12s  %-24s  %s%s%s%s\n", process->pid, format_ns(uptime, process->uptime_ns),
		format_bytes(held, process->live_bytes),
		format_text(exe, sizeof(exe), process->exe), process->is_gone ? "  (" : "", process->is_gone ? end : "",
		process->is_gone ? ")" : "");
}

int run_list(void)
{
	bool has_heading = false;
	int nr_found = source_list(print_process, &has_heading);

	if (nr_found < 0)
		fail("no SysV shared memory here, so watched processes cannot be listed");
	if (!nr_found)
		puts("no watched process");
	return fflush(stdout) ? 1 : 0;
}
