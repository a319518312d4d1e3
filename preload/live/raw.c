/* SPDX-License-Identifier: MIT */
/*
 * raw.c - the report of last resort; see raw.h.
 *
 * Sites come in the order of their ids, not sorted: sorting needs room. The form of a frame is the
 * sanitizers', with the function left out, so that addr2line and scripts can go on from there.
 */
#include "preload/live/raw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "preload/base/log.h"
#include "preload/base/sys.h"
#include "preload/record/sites.h"
#include "preload/share/box.h"
#include "preload/share/emit.h"

enum { LINE_BYTES = 1400, ROOM_BYTES = 64 << 20 };

static const char *const kind_names[LW_NR_KINDS] = { "unknown", "malloc", "calloc", "realloc", "aligned",
	"new", "new[]", "free", "realloc", "delete", "delete[]" };

static bool is_cut; /* something did not get into the file */

/* -1: stderr, through the log, which looks whether it is still the file it was. */
static void say(int fd, const char *text, int nr_bytes)
{
	if (nr_bytes <= 0)
		return;
	if (nr_bytes >= LINE_BYTES)
		nr_bytes = LINE_BYTES - 1;
	if (fd < 0)
		(void)lw_log_text(text, (size_t)nr_bytes);
	else
		is_cut |= lw_sys_write(fd, text, (size_t)nr_bytes) != nr_bytes;
}

static const char *kind_name(const struct lw_site *site)
{
	uint32_t kind = lw_load(&site->kind);

	return kind_names[kind < LW_NR_KINDS ? kind : 0];
}

/* Was it allocated inside libc, the loader or libstdc++? Without names that is all there is to go by. */
static bool is_through_runtime(uint32_t id)
{
	static const char *const names[] = { "libc.so", "ld-linux", "libstdc++.so", "libpthread.so" };
	const struct lw_site *site = lw_box_site(id);
	uint32_t nr_frames = lw_box_nr_frames(site);
	uint16_t module_id = nr_frames ? *(const uint16_t *)(lw_sites_pcs(id) + nr_frames) : LW_NO_MODULE;
	const struct lw_module *module = lw_box_module(module_id);
	const char *path, *slash;

	if (module_id >= lw_load(&lw_own.nr_modules))
		return false;
	path = lw_box_pool(module->path_off);
	slash = memrchr(path, '/', module->path_bytes < LINE_BYTES ? module->path_bytes : LINE_BYTES);
	for (size_t i = 0; i < LW_ARRAY_LENGTH(names); i++) {
		if (slash && !strncmp(slash + 1, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static void say_frames(int fd, uint32_t id)
{
	const struct lw_site *site = lw_box_site(id);
	const uint64_t *pcs = lw_sites_pcs(id);
	uint32_t nr_frames = lw_box_nr_frames(site);
	const uint16_t *modules = (const uint16_t *)(pcs + nr_frames);
	char line[LINE_BYTES];

	for (uint32_t i = 0; i < nr_frames; i++) {
		const struct lw_module *module;

		if (modules[i] >= lw_load(&lw_own.nr_modules)) {
			say(fd, line, snprintf(line, sizeof(line), "    #%u 0x%llx\n", i,
					(unsigned long long)pcs[i]));
			continue;
		}
		module = lw_box_module(modules[i]);
		say(fd, line, snprintf(line, sizeof(line), "    #%u 0x%llx (%.*s+0x%llx)\n", i,
				(unsigned long long)pcs[i], module->path_bytes < LINE_BYTES ? (int)module->path_bytes : LINE_BYTES,
				(const char *)lw_box_pool(module->path_off),
				(unsigned long long)(pcs[i] - module->base)));
	}
}

static const char *error_name(long err)
{
	switch (err) {
	case -EMFILE:
	case -ENFILE:
		return "too many open files";
	case -EACCES:
	case -EPERM:
		return "permission denied";
	case -ENOENT:
		return "no such folder";
	default:
		return "it cannot be opened";
	}
}

/* The file named by log_path, new or our own; -1: stderr, and *why not the file. */
static int open_log(const struct lw_options *options, const char **why)
{
	const char *slash = memrchr(lw_box->exe, '/', lw_own.exe_bytes);
	struct lw_options_names names = {
		.pid = lw_own.pid,
		.program = slash ? slash + 1 : lw_box->exe,
		.host = "localhost",
		.time_s = lw_box->started_real_ns / 1000000000,
	};
	static char path[LW_OPTION_PATH_BYTES] LW_ROOM;
	struct rlimit limit = { 0, 0 };
	struct stat file;
	int fd;

	*why = NULL;
	if (!options->log_path[0])
		return -1;
	*why = "the name is too long";
	if (!lw_options_expand(path, sizeof(path), options->log_path, &names))
		return -1;
	/* an empty one would say that nothing leaked */
	(void)lw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit);
	*why = "the limit of file sizes is too low";
	if (limit.rlim_cur <= ROOM_BYTES)
		return -1;
	fd = (int)lw_syscall(SYS_openat, AT_FDCWD, path,
			O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
	*why = error_name(fd);
	if (fd < 0)
		return -1;
	/* a plain file with room: no reader to wait for, no SIGPIPE, no SIGXFSZ */
	*why = "it is no plain file";
	if (lw_syscall(SYS_fstat, fd, &file) == 0 && S_ISREG(file.st_mode)) {
		if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > (uint64_t)file.st_size + ROOM_BYTES)
			return fd;
		*why = "the limit of file sizes is too low";
	}
	lw_sys_close(fd);
	return -1;
}

static void say_head(int fd, const char *why)
{
	char line[LINE_BYTES];

	say(fd, line, snprintf(line, sizeof(line),
			"leakwatch: %s: raw report of pid %d\n", why, lw_own.pid));
}

/* A disk that is full is noticed at the first line, most likely: then stderr gets the report. */
static int begin(int fd, const char *why, bool may_use_stderr)
{
	is_cut = false;
	if (fd >= 0 || may_use_stderr)
		say_head(fd, why);
	if (!is_cut)
		return fd;
	lw_sys_close(fd);
	is_cut = false;
	if (may_use_stderr)
		say_head(-1, why);
	return -1;
}

static void say_dropped(int fd)
{
	uint64_t blocks = lw_load(&lw_box->dropped[LW_DROP_BLOCKS]), sum = 0;
	char line[LINE_BYTES];

	for (size_t why = 0; why < LW_NR_DROPS; why++)
		sum += lw_load(&lw_box->dropped[why]);
	if (sum)
		say(fd, line, snprintf(line, sizeof(line), "dropped: %llu block(s) not recorded, %llu other(s)\n",
				(unsigned long long)blocks, (unsigned long long)(sum - blocks)));
}

void lw_raw_report(const struct lw_options *options, const char *why, struct lw_report_done *done)
{
	bool may_use_stderr = lw_box->flags & (LW_REGION_ROOT | LW_REGION_WATCHED);
	uint32_t nr_sites = lw_load_acquire(&lw_own.nr_sites);
	char line[LINE_BYTES];
	const char *why_no_file;
	int fd = open_log(options, &why_no_file);

	if (fd < 0 && why_no_file && may_use_stderr)
		lw_log("cannot write %s: %s", options->log_path, why_no_file);
	fd = begin(fd, why, may_use_stderr);
	*done = (struct lw_report_done){ .nr_mismatches = lw_load(&lw_own.nr_events) };
	if (fd < 0 && !may_use_stderr)
		return;
	for (uint32_t id = 0; id < nr_sites; id++) {
		struct lw_count count = lw_emit_site_count(lw_box, lw_own.total_bytes, id);
		uint64_t blocks = count.alloc_blocks - count.freed_blocks;

		if (!blocks || (int64_t)blocks < 0)
			continue;
		done->leaked_blocks += blocks;
		done->leaked_bytes += count.alloc_bytes - count.freed_bytes;
		say(fd, line, snprintf(line, sizeof(line), "%llu byte(s) in %llu block(s) by %s not freed%s:\n",
				(unsigned long long)(count.alloc_bytes - count.freed_bytes),
				(unsigned long long)blocks,
				kind_name(lw_box_site(id)),
				is_through_runtime(id) ? ", inside the C or C++ library, perhaps its own" : ""));
		say_frames(fd, id);
	}
	say_dropped(fd);
	say(fd, line, snprintf(line, sizeof(line),
			"SUMMARY: LeakWatch: %llu byte(s) leaked in %llu allocation(s).\n",
			(unsigned long long)done->leaked_bytes, (unsigned long long)done->leaked_blocks));
	if (fd >= 0)
		lw_sys_close(fd);
	if (is_cut && may_use_stderr)
		lw_log("the raw report in %s is cut: it could not be written", options->log_path);
}

static const char *event_name(uint32_t what)
{
	static const char *const names[LW_NR_EVENT_KINDS] = { "", "mismatch", "double free", "unknown free",
		"size mismatch", "alignment mismatch" };

	return what < LW_NR_EVENT_KINDS ? names[what] : "";
}

static void say_site(const char *what, uint32_t id)
{
	const struct lw_site *site = lw_box_site(id);
	uint32_t hint = lw_load(&site->hint);
	char line[LINE_BYTES];

	if (!id || id >= lw_load(&lw_own.nr_sites))
		return;
	if (hint && hint < lw_own.nr_hints)
		say(-1, line, snprintf(line, sizeof(line), "  %s by %s at %.1000s:%u:\n", what, kind_name(site),
				(const char *)lw_box_pool(lw_box_hint(hint)->file_off), lw_box_hint(hint)->line));
	else
		say(-1, line, snprintf(line, sizeof(line), "  %s by %s:\n", what, kind_name(site)));
	say_frames(-1, id);
}

void lw_raw_event(uint32_t index)
{
	const struct lw_event *event = lw_box_event(index);
	char line[LINE_BYTES];

	if (!(lw_box->flags & (LW_REGION_ROOT | LW_REGION_WATCHED)))
		return;
	say(-1, line, snprintf(line, sizeof(line), "leakwatch: pid %d: %s of a block of %llu byte(s)\n", lw_own.pid,
			event_name(event->what), (unsigned long long)event->bytes));
	say_site("released", lw_load(&event->free_site));
	say_site("allocated", lw_load(&event->alloc_site));
}
