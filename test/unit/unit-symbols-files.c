/* SPDX-License-Identifier: MIT */
/*
 * unit-symbols-files.c - where symbols are looked for, and files that are not what they should be.
 *
 * Copies of the sample are made in a scratch folder: elsewhere, without section headers, cut off,
 * with flipped bits. Of damaged ones no answer is wrong, but there must be one.
 *
 * usage: unit-symbols-files FOLDER, where the samples are
 */
#include "test/unit/symbols/stacks.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	NR_CUTS = 64,
	NR_FLIPPED = 200,
	FLIPS = 32, /* bits in one copy */
};

static char scratch[] = "/tmp/unit-symbols-XXXXXX";

static void test_no_object(void)
{
	static const char *const paths[] = {"linux-vdso.so.1", "[vdso]", "", "/", "/dev/null",
		"/dev/zero", "/no/such/file", "/tmp/gone (deleted)"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbols *symbols = sample_open("", paths[i]);

		ok(sample_is_unknown(symbols, 1, 0x1000) && !symbols_callee(symbols, 1, 0x1000),
			"not a file to read: '%s'", paths[i]);
		symbols_free(symbols);
	}
	snprintf(path, sizeof(path), "%s/fifo", scratch);
	if (ok(!mkfifo(path, 0600), "make a fifo")) {
		struct symbols *symbols = sample_open("", path);

		ok(sample_is_unknown(symbols, 1, 0x1000), "a fifo does not block");
		symbols_free(symbols);
		unlink(path);
	}
}

/* What the loader needs is enough to name a callee. */
static void test_no_sections(const struct loaded *sample)
{
	const void **hidden = dlsym(sample->handle, "sample_hidden_returned_to");
	char path[PATH_BYTES];
	struct symbols *symbols;
	size_t nr_bytes;
	uint8_t *bytes;
	Elf64_Ehdr header;

	snprintf(path, sizeof(path), "%s/sample-stripped.so", sample_folder);
	bytes = sample_read_file(path, &nr_bytes);
	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	snprintf(path, sizeof(path), "%s/no-sections.so", scratch);
	sample_write_file(path, bytes, nr_bytes);
	symbols = sample_open("", path);
	is_str(symbols_callee(symbols, 1, sample_stacks[0].offset), "sample_note",
		"no sections: callee");
	is_str(symbols_callee(symbols, 1, sample_stacks[1].offset), "sample_note",
		"no sections: private");
	ok(!symbols_callee(symbols, 1, sample_offset_in(sample, *hidden)),
		"no sections: unknown callee");
	is_str(sample_function_at(symbols, sample_stacks[0].offset, false), "sample_outer",
		"no sections: name");
	symbols_free(symbols);
	unlink(path);
	free(bytes);
}

static void make_folder(const char *name)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	if (mkdir(path, 0700))
		printf("Bail out! cannot make %s\n", path);
}

static void copy_into(const char *to, const char *name)
{
	char path[PATH_BYTES];
	size_t nr_bytes;
	uint8_t *bytes;

	snprintf(path, sizeof(path), "%s/%s", sample_folder, name);
	bytes = sample_read_file(path, &nr_bytes);
	snprintf(path, sizeof(path), "%s/%s/%s", scratch, to, name);
	sample_write_file(path, bytes, nr_bytes);
	free(bytes);
}

/* The module and its debug file are looked for inside the root, each where it would be outside. */
static void test_root(const struct loaded *sample)
{
	static const char *const folders[] = {
		"app", "usr", "usr/lib", "usr/lib/debug", "usr/lib/debug/app"};
	char path[PATH_BYTES];
	struct symbols *symbols;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_folder(folders[i]);
	copy_into("app", "sample-split.so");
	symbols = sample_open(scratch, "/app/sample-split.so");
	is_str(sample_function_at(symbols, sample_stacks[0].offset, false), "sample_outer",
		"a module in a root");
	symbols_free(symbols);
	copy_into("usr/lib/debug/app", "sample-split.debug");
	sample_check_stacks(scratch, "/app/sample-split.so", sample->lines);
	snprintf(path, sizeof(path), "%s/usr/lib/debug/app/sample-split.debug", scratch);
	unlink(path);
	copy_into("app", "sample-split.debug");
	sample_check_stacks(scratch, "/app/sample-split.so", sample->lines);
	sample_check_stacks("/no/such/root", sample->path, sample->lines);
	snprintf(path, sizeof(path), "%s/app/sample-split.debug", scratch);
	unlink(path);
	snprintf(path, sizeof(path), "%s/app/sample-split.so", scratch);
	unlink(path);
	for (size_t i = sizeof(folders) / sizeof(folders[0]); i--;) {
		snprintf(path, sizeof(path), "%s/%s", scratch, folders[i]);
		rmdir(path);
	}
}

/* Any answer will do; there must be one, and valgrind or a sanitizer must be content. */
static size_t ask_all(const char *path, size_t nr_bytes)
{
	struct symbols *symbols = sample_open("", path);
	size_t nr_frames, nr_answers = 0;

	for (size_t i = 0; i < NR_STACKS; i++) {
		nr_answers +=
			symbols_resolve(symbols, 1, sample_stacks[i].offset, false, &nr_frames) &&
			nr_frames > 0;
		symbols_callee(symbols, 1, sample_stacks[i].offset);
	}
	for (uint64_t offset = 0; offset < nr_bytes; offset += 97) {
		symbols_resolve(symbols, 1, offset, true, &nr_frames);
		symbols_callee(symbols, 1, offset);
	}
	symbols_free(symbols);
	return nr_answers;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_damaged(const struct loaded *sample)
{
	uint64_t state = 88172645463325252u;
	char path[PATH_BYTES];
	size_t nr_bytes, nr_answers = 0;
	uint8_t *bytes = sample_read_file(sample->path, &nr_bytes);

	snprintf(path, sizeof(path), "%s/damaged.so", scratch);
	for (size_t i = 0; i < NR_CUTS; i++) {
		sample_write_file(path, bytes, nr_bytes * i / NR_CUTS);
		nr_answers += ask_all(path, nr_bytes);
	}
	is_u64(nr_answers, NR_CUTS * NR_STACKS, "cut files answer");
	nr_answers = 0;
	for (size_t i = 0; i < NR_FLIPPED; i++) {
		uint8_t *copy = malloc(nr_bytes);
		size_t within = i % 4 ? nr_bytes : sizeof(Elf64_Ehdr) + 16 * sizeof(Elf64_Phdr);

		memcpy(copy, bytes, nr_bytes);
		for (size_t n = 0; n < FLIPS; n++) {
			uint64_t random = next_random(&state);

			copy[(random >> 3) % within] ^= (uint8_t)(1 << (random & 7));
		}
		memcpy(copy, bytes, i % 8 ? EI_NIDENT + 4 : 0); /* mostly still an ELF file */
		sample_write_file(path, copy, nr_bytes);
		nr_answers += ask_all(path, nr_bytes);
		free(copy);
	}
	is_u64(nr_answers, NR_FLIPPED * NR_STACKS, "files with flipped bits answer");
	unlink(path);
	free(bytes);
}

int main(int argc, char **argv)
{
	struct loaded sample;

	if (argc != 2 || !mkdtemp(scratch))
		return 2;
	snprintf(sample_folder, sizeof(sample_folder), "%s", argv[1]);
	if (sample_load(&sample, "sample.so")) {
		sample_run_all(&sample);
		test_no_object();
		test_no_sections(&sample);
		test_root(&sample);
		test_damaged(&sample);
	}
	rmdir(scratch);
	return done();
}
