/* SPDX-License-Identifier: MIT */
/*
 * unit-output.c - files of others and planted links are left alone, a reader of JSON never sees
 * half a file, and a descriptor that nobody empties costs two seconds in all, not more, and keeps
 * its flags.
 */
#include "test/unit/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/report/output.h"

static char folder[] = "/tmp/leakwatch-output-XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[4][128];
	static int nr;
	char *path = paths[nr++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static int put(const char *name, enum output_way way, const char *text)
{
	return output_file(in_folder(name), way, text, strlen(text));
}

static bool holds(const char *name, const char *text)
{
	char got[64] = "";
	FILE *file = fopen(in_folder(name), "r");

	if (!file)
		return false;
	got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
	fclose(file);
	return !strcmp(got, text);
}

/* All descriptors are taken once those for a file are kept. */
static void test_reserve(void)
{
	int taken[64], nr = 0;
	struct rlimit before, low;

	(void)getrlimit(RLIMIT_NOFILE, &before);
	low = (struct rlimit){32, before.rlim_max};
	(void)setrlimit(RLIMIT_NOFILE, &low);
	output_reserve();
	while (nr < 64 && (taken[nr] = open("/dev/null", O_RDONLY)) >= 0)
		nr++;
	for (int round = 0; round < 2; round++) {
		is_u64(put("low", OUTPUT_REPLACE, "one"), 0, "no descriptor but the kept ones");
		ok(open("/dev/null", O_RDONLY) < 0, "which are kept again");
	}
	while (nr)
		close(taken[--nr]);
	(void)setrlimit(RLIMIT_NOFILE, &before);
	ok(holds("low", "one"), "it is written");
	(void)unlink(in_folder("low"));
}

static void test_files(void)
{
	struct stat stat_of;

	is_u64(put("log", OUTPUT_IN_PLACE, "long text"), 0, "a new file");
	is_u64(put("log", OUTPUT_IN_PLACE, "short"), 0, "over an old one of ours");
	ok(holds("log", "short"), "nothing of the old is left");
	ok(stat(in_folder("log"), &stat_of) == 0 && (stat_of.st_mode & 0777) == 0600,
		"for us alone");
	is_u64(put("json", OUTPUT_REPLACE, "one"), 0, "a new JSON file");
	is_u64(put("json", OUTPUT_REPLACE, "two"), 0, "replaced");
	ok(holds("json", "two"), "by the new one");
	is_u64(-put("none/x", OUTPUT_REPLACE, "x"), ENOENT, "no folder");
	is_u64(-put("log/x", OUTPUT_REPLACE, "x"), ENOTDIR, "a file is no folder");
	is_u64(-put("", OUTPUT_REPLACE, "x"), EISDIR, "a folder is no file");
	is_u64(output_file("/dev/null", OUTPUT_IN_PLACE, "x", 1), 0, "a device");
	is_u64(output_file("/dev/null", OUTPUT_REPLACE, "x", 1), 0, "is not replaced");
	ok(stat("/dev/null", &stat_of) == 0 && S_ISCHR(stat_of.st_mode), "but written to");
	is_u64(-output_file("/dev/full", OUTPUT_IN_PLACE, "x", 1), ENOSPC, "a full device");
}

static void test_links(void)
{
	ok(symlink("precious", in_folder("link")) == 0, "a planted link");
	is_u64(put("precious", OUTPUT_IN_PLACE, "precious"), 0, "to something precious");
	is_u64(-put("link", OUTPUT_IN_PLACE, "x"), ELOOP, "is not followed");
	is_u64(-put("link", OUTPUT_REPLACE, "x"), ELOOP, "nor replaced");
	ok(link(in_folder("precious"), in_folder("hard")) == 0, "a hard link");
	is_u64(-put("hard", OUTPUT_IN_PLACE, "x"), EPERM, "is not written through");
	ok(holds("precious", "precious"), "it is unharmed");
	ok(mkfifo(in_folder("fifo"), 0600) == 0, "a pipe nobody reads");
	is_u64(-put("fifo", OUTPUT_IN_PLACE, "x"), EPERM, "does not hang us");
	ok(mkdir(in_folder("dir"), 0700) == 0 && symlink("dir", in_folder("dirlink")) == 0,
		"a link to a folder");
	is_u64(put("dirlink/x", OUTPUT_IN_PLACE, "x"), 0,
		"is followed where only we could make it");
}

/* Needs root: links of somebody else in a folder that everybody may write to. */
static void test_strangers(void)
{
	if (geteuid() != 0) {
		ok(true, "links of strangers # SKIP not root");
		return;
	}
	ok(chmod(folder, 01777) == 0, "a folder like /tmp");
	ok(lchown(in_folder("dirlink"), 65534, 65534) == 0, "with a stranger's link to a folder");
	is_u64(-put("dirlink/y", OUTPUT_IN_PLACE, "x"), ENOTDIR, "is not followed");
	ok(chown(in_folder("log"), 65534, 65534) == 0, "a stranger's file");
	is_u64(-put("log", OUTPUT_IN_PLACE, "x"), EPERM, "is not written");
	is_u64(-put("log", OUTPUT_REPLACE, "x"), EPERM, "nor replaced");
	ok(chmod(folder, 0700) == 0, "and back");
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void test_shared(void)
{
	size_t nr_bytes = 1 << 20;
	char *text = calloc(1, nr_bytes);
	double began;
	int fds[2], flags;

	ok(pipe(fds) == 0, "a pipe");
	ok(output_shared(fds[1], "hello", 5), "takes a little");
	flags = fcntl(fds[1], F_GETFL);
	began = seconds();
	ok(!output_shared(fds[1], text, nr_bytes), "a full one does not take all");
	ok(seconds() - began > 1.5 && seconds() - began < 3, "and we give up after two seconds");
	is_u64(fcntl(fds[1], F_GETFL), flags, "its flags are as they were");
	began = seconds();
	ok(!output_shared(fds[1], text, nr_bytes), "next time");
	ok(seconds() - began < 0.5, "at once: the patience is for all of it together");
	close(fds[0]);
	ok(!output_shared(fds[1], text, 10), "nobody reads any more: no signal, no wait");
	close(fds[1]);
	ok(!output_shared(fds[1], text, 10), "not open");
	free(text);
}

static void test_identity(void)
{
	struct stat stat_of;

	ok(stat("/dev/null", &stat_of) == 0, "a file");
	ok(!output_is_file(1, stat_of.st_dev, stat_of.st_ino + 1), "another inode is another file");
	ok(fstat(1, &stat_of) == 0 && output_is_file(1, stat_of.st_dev, stat_of.st_ino),
		"the same is the same");
	ok(!output_is_file(999, stat_of.st_dev, stat_of.st_ino), "not open");
}

int main(void)
{
	char command[64];

	(void)signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder))
		return tap_skip_all("no folder in /tmp");
	test_reserve();
	test_files();
	test_links();
	test_strangers();
	test_identity();
	test_shared();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ok(system(command) == 0, "cleaned up");
	return done();
}
