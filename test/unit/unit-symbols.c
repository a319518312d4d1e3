/* SPDX-License-Identifier: MIT */
/*
 * unit-symbols.c - names and lines for addresses, against objects whose source says what is right.
 *
 * Copies of the sample (stripped, with split debug information) are only read, at the same offsets
 * where the sample that was run has its calls.
 *
 * usage: unit-symbols FOLDER, where the samples are
 */
#include "test/unit/symbols/stacks.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void test_exact(const struct loaded *sample)
{
	struct symbols *symbols = sample_open("", sample->path);
	uint64_t start = sample_offset_of(sample, "sample_note");
	const char *before = sample_function_at(symbols, start, false);

	is_str(sample_function_at(symbols, start, true), "sample_note",
		"an exact pc at a function's start");
	ok(!before || strcmp(before, "sample_note"),
		"a return address there is not of the function");
	is_str(sample_function_at(symbols, start + 1, false), "sample_note", "one byte on, it is");
	ok(sample_function_at(symbols, start + 1, false) ==
			sample_function_at(symbols, start, true),
		"the same string for the same place");
	is_str(sample_function_at(symbols, sample_offset_of(sample, "sample_unsized") + 2, true),
		"sample_unsized", "assembler without a size");
	ok(sample_is_unknown(symbols, 1, 0), "the offset 0");
	ok(sample_is_unknown(symbols, 1, UINT64_MAX), "the last offset");
	ok(sample_is_unknown(symbols, 2, start), "a module nobody told");
	symbols_free(symbols);
}

/* Only exported names are left, and no address belongs to a name that it is not inside of. */
static void test_stripped(const struct loaded *sample)
{
	char path[PATH_BYTES];
	struct symbols *symbols;
	uint64_t unsized = sample_offset_of(sample, "sample_unsized");
	size_t nr_frames;
	const struct symbol_frame *frame;

	snprintf(path, sizeof(path), "%s/sample-stripped.so", sample_folder);
	symbols = sample_open("", path);
	frame = symbols_resolve(symbols, 1, sample_stacks[0].offset, false, &nr_frames);
	is_u64(nr_frames, 1, "stripped: one frame");
	is_str(frame->function, "sample_outer", "stripped: exported function");
	ok(!frame->file && !frame->line, "stripped: no line");
	ok(sample_is_unknown(symbols, 1, sample_stacks[1].offset),
		"stripped: a private function has no name");
	is_str(sample_function_at(symbols, unsized, true), "sample_unsized",
		"stripped: no size, start");
	is_str(sample_function_at(symbols, unsized + 3, true), "sample_unsized",
		"stripped: no size, end");
	ok(sample_is_unknown(symbols, 1, unsized + 64), "stripped: no size, beyond the section");
	symbols_free(symbols);
}

static void test_build_id(const struct loaded *sample)
{
	struct symbols *symbols = symbols_new("");
	int fd = open(sample->path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	const void *bits;
	ssize_t nr_bytes = dwelf_elf_gnu_build_id(elf, &bits);
	uint8_t id[64] = {0};

	ok(nr_bytes >= 8 && nr_bytes < (ssize_t)sizeof(id), "the sample has a build id");
	memcpy(id, bits, (size_t)nr_bytes);
	symbols_module(symbols, 1, sample->path, id, (size_t)nr_bytes);
	symbols_module(symbols, 2, sample->path, id, 8);
	symbols_module(symbols, 3, sample->path, id, (size_t)nr_bytes + 1);
	id[7] ^= 1;
	symbols_module(symbols, 4, sample->path, id, (size_t)nr_bytes);
	symbols_module(symbols, 5, sample->path, NULL, 0);
	symbols_module(symbols, 5, sample->path, id, (size_t)nr_bytes);
	ok(!sample_is_unknown(symbols, 1, sample_stacks[0].offset), "its own build id");
	ok(!sample_is_unknown(symbols, 2, sample_stacks[0].offset), "the beginning of it");
	ok(sample_is_unknown(symbols, 3, sample_stacks[0].offset), "a longer one");
	ok(sample_is_unknown(symbols, 4, sample_stacks[0].offset), "another one");
	ok(!symbols_callee(symbols, 4, sample_stacks[0].offset), "another one: no callee");
	ok(sample_is_unknown(symbols, 5, sample_stacks[0].offset),
		"the last word about a module counts");
	elf_end(elf);
	close(fd);
	symbols_free(symbols);
}

static void test_callees(const struct loaded *sample, const char *name)
{
	struct symbols *symbols = sample_open("", sample->path);
	const void **hidden = dlsym(sample->handle, "sample_hidden_returned_to");

	for (size_t i = 0; i < NR_STACKS; i++)
		is_str(symbols_callee(symbols, 1, sample_run(sample, sample_stacks[i].entry)),
			"sample_note", "%s: %s calls", name, sample_stacks[i].entry);
	is_str(symbols_callee(symbols, 1, sample_offset_in(sample, *hidden)), "hidden",
		"%s: a direct call", name);
	ok(!symbols_callee(symbols, 1, sample_offset_of(sample, "sample_unsized") + 3),
		"%s: no call", name);
	ok(!symbols_callee(symbols, 1, 0) && !symbols_callee(symbols, 1, 3) &&
			!symbols_callee(symbols, 1, UINT64_MAX),
		"%s: no code", name);
	symbols_free(symbols);
}

static void test_fixed(const struct loaded *sample)
{
	char path[PATH_BYTES];
	struct stack stack = sample_stacks[0];
	struct symbols *symbols;
	void *addr = NULL;
	FILE *program;

	snprintf(path, sizeof(path), "%s/sample-fixed", sample_folder);
	program = popen(path, "r");
	ok(program && fscanf(program, "%p", &addr) == 1, "a program at fixed addresses runs");
	pclose(program);
	stack.offset = (uintptr_t)addr;
	symbols = sample_open("", path);
	sample_check_stack(symbols, &stack, sample->lines);
	is_str(symbols_callee(symbols, 1, stack.offset), "sample_note", "fixed: a direct call");
	symbols_free(symbols);
}

static void test_debuginfod(void)
{
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9/", 1);
	setenv("LEAKWATCH_DEBUGINFOD", "1", 1);
	symbols_free(symbols_new(""));
	ok(getenv("DEBUGINFOD_URLS"), "the network is left on where it was asked for");
	unsetenv("LEAKWATCH_DEBUGINFOD");
	symbols_free(symbols_new(""));
	ok(!getenv("DEBUGINFOD_URLS"), "and off otherwise");
}

int main(int argc, char **argv)
{
	struct loaded sample, noplt, ibt;
	char path[PATH_BYTES];

	if (argc != 2)
		return 2;
	snprintf(sample_folder, sizeof(sample_folder), "%s", argv[1]);
	test_debuginfod();
	if (!sample_load(&sample, "sample.so") || !sample_load(&noplt, "sample-noplt.so") ||
		!sample_load(&ibt, "sample-ibt.so"))
		return done();
	sample_run_all(&sample);
	sample_check_stacks("", sample.path, sample.lines);
	snprintf(path, sizeof(path), "%s/sample-split.so", sample_folder);
	sample_check_stacks("", path, sample.lines);
	test_exact(&sample);
	test_stripped(&sample);
	test_build_id(&sample);
	test_callees(&sample, "plt");
	test_callees(&noplt, "no plt");
	test_callees(&ibt, "ibt");
	test_fixed(&sample);
	return done();
}
