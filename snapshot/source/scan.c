/* SPDX-License-Identifier: MIT */
/*
 * scan.c - asking a watched process for a scan, by a word in its region.
 *
 * The process sees the word at its next allocation or release, a tenth of a second later at most, and
 * answers in the region. One that neither allocates nor releases (idle, in a loop) is made to look by ptrace. Where that
 * is not allowed, or it is stopped, the caller is told so, and has the results of the last scan, if there was one.
 */
#include "snapshot/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <time.h>

#include "preload/base/base.h"
#include "snapshot/source/knock.h"

enum {
	POLL_MS = 5,
	BEGIN_WAIT_MS = 3000, /* until it has begun */
	KNOCK_EVERY_MS = 300,
	END_WAIT_MS = 120000,
};

static void sleep_ms(long ms)
{
	const struct timespec wait = {.tv_nsec = ms * 1000000};

	(void)nanosleep(&wait, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool source_scan_begin(struct source_scan *scan, pid_t pid, struct source_error *error)
{
	struct source_region found;

	*scan = (struct source_scan){.pid = pid};
	if (!source_attach(pid, &found, error))
		return false;
	lw_region_detach(found.region);
	scan->region = found.is_alive && found.shmid >= 0 ? shmat(found.shmid, NULL, 0) : (void *)-1;
	if (scan->region == (void *)-1) {
		scan->region = NULL;
		(void)snprintf(error->text, sizeof(error->text), "process %d cannot be asked: %s", (int)pid,
			found.is_alive ? strerror(found.shmid < 0 ? EOPNOTSUPP : errno) : "it has ended");
		return false;
	}
	alive_open(&scan->alive, pid, found.shmid, true);
	scan->began_ns = now_ns();
	scan->before_ns = lw_load(&scan->region->scan.began_mono_ns);
	scan->request = __atomic_add_fetch(&scan->region->scan.request, 1, __ATOMIC_ACQ_REL);
	return true;
}

enum source_answer source_scan_look(struct source_scan *scan, struct source_error *error)
{
	struct lw_region_header *region = scan->region;
	uint64_t waited_ms = (now_ns() - scan->began_ns) / 1000000;

	scan->has_begun = scan->has_begun || lw_load(&region->scan.began_mono_ns) != scan->before_ns;
	if ((int32_t)(lw_load_acquire(&region->scan.served) - scan->request) >= 0)
		return SOURCE_ANSWERED;
	if (alive_is_dead(&scan->alive)) {
		(void)snprintf(error->text, sizeof(error->text), "process %d has ended meanwhile", (int)scan->pid);
		return SOURCE_NO_ANSWER;
	}
	if (!scan->has_begun && waited_ms >= (scan->nr_knocks + 1) * KNOCK_EVERY_MS && waited_ms < BEGIN_WAIT_MS) {
		scan->nr_knocks++;
		scan->why = knock_at(scan->pid, region);
	}
	if (!scan->has_begun && waited_ms >= BEGIN_WAIT_MS) {
		(void)snprintf(error->text, sizeof(error->text),
			"process %d has not begun to look for lost memory within %d ms: it neither allocated nor released any%s%s",
			(int)scan->pid, BEGIN_WAIT_MS, scan->why ? ", and cannot be made to look, since " : "",
			scan->why ? scan->why : "");
		return SOURCE_NO_ANSWER;
	}
	if (waited_ms < END_WAIT_MS)
		return SOURCE_NOT_YET;
	(void)snprintf(error->text, sizeof(error->text),
		"process %d has not finished looking for lost memory within two minutes", (int)scan->pid);
	return SOURCE_NO_ANSWER;
}

void source_scan_end(struct source_scan *scan)
{
	if (!scan->region)
		return;
	alive_close(&scan->alive);
	(void)shmdt(scan->region);
	scan->region = NULL;
}

bool source_ask_scan(pid_t pid, struct source_error *error)
{
	enum source_answer answer;
	struct source_scan scan;

	if (!source_scan_begin(&scan, pid, error))
		return false;
	while ((answer = source_scan_look(&scan, error)) == SOURCE_NOT_YET)
		sleep_ms(POLL_MS);
	source_scan_end(&scan);
	return answer == SOURCE_ANSWERED;
}
