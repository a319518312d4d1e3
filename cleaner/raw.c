/* SPDX-License-Identifier: MIT */
/*
 * raw.c - the post-mortem of last resort; see raw.h.
 *
 * Reads the region through the emitter alone, which checks all that it follows: here the records are
 * only turned into lines. Modules come before the sites that name them. A site's stack comes before
 * its count, so the last one is kept until that says whether it is worth a line.
 */
#include "cleaner/raw.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleaner/tty.h"
#include "preload/share/emit.h"
#include "preload/share/limits.h"

enum { LEAST_FILE_BYTES = 4096 }; /* allowed, for some of it to get there: an empty file would say "no leaks" */

struct module {
	uint64_t base;
	char *path;
};

struct raw {
	FILE *out; /* NULL: only counting */
	struct module modules[LW_MAX_MODULES];
	char last[LW_WIRE_MAX] __attribute__((aligned(8))); /* struct lw_wire_site */
	uint64_t bytes, blocks, nr_events;
};

static void keep_module(struct raw *raw, const struct lw_wire_module *module)
{
	if (module->id >= LW_MAX_MODULES || raw->modules[module->id].path)
		return;
	raw->modules[module->id].base = module->base;
	raw->modules[module->id].path = strndup(module->path, module->path_bytes);
}

static void print_frames(const struct raw *raw, const struct lw_wire_site *site)
{
	const uint16_t *ids = (const uint16_t *)(site->pc + site->nr_frames);

	for (uint32_t i = 0; i < site->nr_frames; i++) {
		unsigned long long pc = site->pc[i];
		const struct module *module = ids[i] < LW_MAX_MODULES ? &raw->modules[ids[i]] : NULL;

		if (module && module->path)
			(void)fprintf(raw->out, "    #%u 0x%llx (%s+0x%llx)\n", i, pc, module->path,
				pc - (unsigned long long)module->base);
		else
			(void)fprintf(raw->out, "    #%u 0x%llx\n", i, pc);
	}
}

static void print_count(struct raw *raw, const struct lw_wire_count *count)
{
	const struct lw_wire_site *last = (const struct lw_wire_site *)raw->last;
	uint64_t blocks = count->alloc_blocks - count->freed_blocks;
	uint64_t bytes = count->alloc_bytes - count->freed_bytes;

	if (!blocks || (int64_t)blocks < 0)
		return;
	raw->blocks += blocks;
	raw->bytes += bytes;
	if (!raw->out)
		return;
	(void)fprintf(raw->out, "%llu byte(s) in %llu block(s) not freed:\n", (unsigned long long)bytes,
		(unsigned long long)blocks);
	if (last->id == count->site)
		print_frames(raw, last);
}

static bool take_record(void *context, const struct lw_wire_head *record)
{
	struct raw *raw = context;

	if (record->type == LW_WIRE_MODULE)
		keep_module(raw, (const struct lw_wire_module *)record);
	else if (record->type == LW_WIRE_SITE && record->bytes <= sizeof(raw->last))
		memcpy(raw->last, record, record->bytes);
	else if (record->type == LW_WIRE_COUNT)
		print_count(raw, (const struct lw_wire_count *)record);
	raw->nr_events += record->type == LW_WIRE_EVENT;
	return true;
}

/* A plain file, new or our own user's; else the terminal; -1 none. */
static int open_place(const struct lw_region_header *copy, const struct lw_options *options)
{
	char path[LW_OPTION_PATH_BYTES], exe[LW_EXE_BYTES + 1];
	struct lw_options_names names = {.pid = copy->pid, .host = "localhost",
		.time_s = copy->started_real_ns / 1000000000};
	struct stat file;
	int fd = -1;

	(void)snprintf(exe, sizeof(exe), "%.*s", LW_EXE_BYTES, copy->exe);
	names.program = strrchr(exe, '/') ? strrchr(exe, '/') + 1 : exe;
	if (options->log_path[0] && lw_limits_hard(LW_LIMIT_FILE_BYTES) >= LEAST_FILE_BYTES &&
		lw_options_expand(path, sizeof(path), options->log_path, &names))
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
			0600);
	if (fd >= 0 && (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode) || file.st_uid != geteuid())) {
		close(fd);
		fd = -1;
	}
	if (fd < 0 && copy->flags & LW_REGION_STDERR_TTY)
		fd = tty_open(copy->stderr_dev, copy->stderr_ino, copy->started_real_ns);
	return fd;
}

static void print(struct raw *raw, const struct lw_region_header *region, uint64_t bytes, int signal)
{
	raw->bytes = raw->blocks = raw->nr_events = 0;
	(void)fprintf(raw->out, "leakwatch: %s: raw report of pid %d, killed",
		lw_limits_hard(LW_LIMIT_FILES) < LW_LIMITS_REPORTER_FILES
			? "the limit of open files is too low for leakwatch-snapshot"
			: "leakwatch-snapshot is missing or did not do it",
		(int)region->pid);
	(void)fprintf(raw->out, signal ? " by signal %d\n" : "\n", signal);
	(void)lw_emit_region(region, bytes, region->ended_mono_ns, take_record, raw);
	(void)fprintf(raw->out,
		"SUMMARY: LeakWatch: %llu byte(s) leaked in %llu allocation(s), %llu wrong release(s).\n",
		(unsigned long long)raw->bytes, (unsigned long long)raw->blocks,
		(unsigned long long)raw->nr_events);
}

void raw_report(const struct lw_region_header *region, uint64_t bytes,
	const struct lw_region_header *copy, const struct lw_options *options, int signal)
{
	struct raw *raw = calloc(1, sizeof(*raw));
	int fd = -1;

	if (!raw)
		return;
	(void)lw_emit_region(region, bytes, region->ended_mono_ns, take_record, raw);
	if (raw->blocks || raw->nr_events || options->report == LW_REPORT_ALWAYS)
		fd = open_place(copy, options);
	raw->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (raw->out) {
		print(raw, region, bytes, signal);
		(void)fclose(raw->out);
	} else if (fd >= 0) {
		close(fd);
	}
	for (size_t i = 0; i < LW_MAX_MODULES; i++)
		free(raw->modules[i].path);
	free(raw);
}
