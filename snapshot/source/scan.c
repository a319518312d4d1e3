/* SPDX-License-Identifier: MIT */
/*
 * scan.c - asking a watched process for a scan, by a word in its region.
 *
 * The process sees the word at its next allocation or release, a tenth of a second later at most, and
 * answers in the region. One that neither allocates nor releases (idle, stopped, in a loop) cannot answer;
 * then the caller is told so, and has the results of the last scan, if there was one.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <time.h>

#include "preload/base/base.h"

enum {
	POLL_MS = 5,
	BEGIN_WAIT_MS = 3000, /* until it has begun */
	END_WAIT_MS = 60000,
};

static void sleep_ms(long ms)
{
	const struct timespec wait = {.tv_nsec = ms * 1000000};

	(void)nanosleep(&wait, NULL);
}

static bool wait_for_answer(struct lw_region_header *region, uint32_t request, struct source_error *error)
{
	uint64_t before_ns = lw_load(&region->scan.began_mono_ns);
	bool has_begun = false;

	for (long waited_ms = 0; waited_ms < END_WAIT_MS; waited_ms += POLL_MS) {
		has_begun = has_begun || lw_load(&region->scan.began_mono_ns) != before_ns;
		if ((int32_t)(lw_load_acquire(&region->scan.served) - request) >= 0)
			return true;
		if (!has_begun && waited_ms >= BEGIN_WAIT_MS) {
			(void)snprintf(error->text, sizeof(error->text),
				"process %d neither allocates nor releases memory just now, so it "
				"cannot be asked to look for lost memory",
				region->pid);
			return false;
		}
		sleep_ms(POLL_MS);
	}
	(void)snprintf(error->text, sizeof(error->text),
		"process %d has not finished looking for lost memory within a minute", region->pid);
	return false;
}

bool source_ask_scan(pid_t pid, struct source_error *error)
{
	const struct lw_region_header *found;
	struct lw_region_header *region;
	uint64_t start_ticks = 0, bytes;
	const char *why = "";
	int32_t ppid;
	bool is_answered;
	int shmid;

	if (!lw_region_proc_stat(pid, &start_ticks, &ppid) ||
		lw_region_attach(pid, start_ticks, &found, &bytes, &shmid, &why)) {
		(void)snprintf(error->text, sizeof(error->text), "process %d cannot be asked", (int)pid);
		return false;
	}
	lw_region_detach(found);
	region = shmat(shmid, NULL, 0);
	if (region == (void *)-1) {
		(void)snprintf(error->text, sizeof(error->text), "process %d cannot be asked: %s", (int)pid,
			strerror(errno));
		return false;
	}
	is_answered = wait_for_answer(region,
		__atomic_add_fetch(&region->scan.request, 1, __ATOMIC_ACQ_REL), error);
	(void)shmdt(region);
	return is_answered;
}
