/* SPDX-License-Identifier: MIT */
/*
 * stacks.h - the samples, loaded and run, and what should be found in them.
 *
 * For the tests of symbols: samples are loaded into the test itself, since their calls leave real
 * return addresses and their variables have the lines of the calls. Header only, as tap.h is, whose
 * counters belong to one file.
 */
#ifndef LW_TEST_STACKS_H
#define LW_TEST_STACKS_H

#include "snapshot/symbols/symbols.h"
#include "test/unit/symbols/sample.h"
#include "test/unit/tap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_HELPER __attribute__((unused)) static

enum {
	PATH_BYTES = 4096,
	MAX_WANTED = 3, /* frames of one stack */
	NR_STACKS = 7,
};

struct wanted_frame {
	const char *function;
	const char *file;
	enum sample_place place;
};

/* An entry point of the sample, and the frames at the call of sample_note() that it leads to. */
struct stack {
	const char *entry;
	struct wanted_frame wanted[MAX_WANTED];
	uint64_t offset; /* of the return address; found by running it */
};

/* A loaded sample. */
struct loaded {
	char path[PATH_BYTES];
	void *handle;
	uint64_t base;
	const int *lines;
};

static struct stack sample_stacks[NR_STACKS] = {
	{"sample_outer",
		{{"inner", "sample.c", SAMPLE_INNER}, {"middle", "sample.c", SAMPLE_MIDDLE},
			{"sample_outer", "sample.c", SAMPLE_OUTER}},
		0},
	{"sample_hidden", {{"hidden", "sample.c", SAMPLE_HIDDEN}}, 0},
	{"sample_alias", {{"sample_alias", "sample.c", SAMPLE_ALIAS}}, 0},
	{"sample_method",
		{{"shapes::Shape::area(int, shapes::Shape const&) const", "sample.cc",
			SAMPLE_METHOD}},
		0},
	{"sample_constructor",
		{{"shapes::Shape::Shape(int, char const*)", "sample.cc", SAMPLE_CONSTRUCTOR}}, 0},
	{"sample_box",
		{{"shapes::(anonymous namespace)::Box<int>::fill(int)", "sample.cc", SAMPLE_BOX}},
		0},
	{"sample_twice",
		{{"long shapes::twice<long>(long)", "sample.cc", SAMPLE_TWICE},
			{"sample_twice", "sample.cc", SAMPLE_USER}},
		0},
};

/* Where the samples are. */
static char sample_folder[PATH_BYTES - 64];

/* Offsets in the file, of an address and of an exported name. */
SAMPLE_HELPER uint64_t sample_offset_in(const struct loaded *sample, const void *addr)
{
	return (uintptr_t)addr - sample->base;
}

SAMPLE_HELPER uint64_t sample_offset_of(const struct loaded *sample, const char *name)
{
	return sample_offset_in(sample, dlsym(sample->handle, name));
}

/* Where the call of sample_note() that the entry point leads to returns to. */
SAMPLE_HELPER uint64_t sample_run(const struct loaded *sample, const char *entry)
{
	const void **returned_to = dlsym(sample->handle, "sample_returned_to");
	int (*function)(int);

	*(void **)&function = dlsym(sample->handle, entry);
	function(1);
	return sample_offset_in(sample, *returned_to);
}

/* False, and said, when it cannot be loaded. */
SAMPLE_HELPER bool sample_load(struct loaded *sample, const char *name)
{
	Dl_info info;

	snprintf(sample->path, sizeof(sample->path), "%s/%s", sample_folder, name);
	sample->handle = dlopen(sample->path, RTLD_NOW | RTLD_LOCAL);
	if (!ok(sample->handle, "%s loads", name))
		return false;
	dladdr(dlsym(sample->handle, "sample_note"), &info);
	sample->base = (uintptr_t)info.dli_fbase;
	sample->lines = dlsym(sample->handle, "sample_lines");
	return true;
}

/* With one module, of the id 1. */
SAMPLE_HELPER struct symbols *sample_open(const char *root, const char *path)
{
	struct symbols *symbols = symbols_new(root);

	symbols_module(symbols, 1, path, NULL, 0);
	return symbols;
}

SAMPLE_HELPER bool ends_with(const char *text, const char *end)
{
	size_t text_bytes = text ? strlen(text) : 0, end_bytes = strlen(end);

	return text_bytes > end_bytes && text[text_bytes - end_bytes - 1] == '/' &&
	       !strcmp(text + text_bytes - end_bytes, end);
}

/* One check a frame and field; lines is what the sample that was run says. */
SAMPLE_HELPER void sample_check_stack(
	struct symbols *symbols, const struct stack *stack, const int *lines)
{
	size_t nr_frames, nr_wanted = 0;
	const struct symbol_frame *frames =
		symbols_resolve(symbols, 1, stack->offset, false, &nr_frames);

	while (nr_wanted < MAX_WANTED && stack->wanted[nr_wanted].function)
		nr_wanted++;
	is_u64(nr_frames, nr_wanted, "%s: number of frames", stack->entry);
	for (size_t i = 0; i < nr_wanted && i < nr_frames; i++) {
		const struct wanted_frame *wanted = &stack->wanted[i];

		is_str(frames[i].function, wanted->function, "%s: function %zu", stack->entry, i);
		ok(ends_with(frames[i].file, wanted->file), "%s: file %zu", stack->entry, i);
		is_u64(frames[i].line, (unsigned)lines[wanted->place], "%s: line %zu", stack->entry,
			i);
		ok(frames[i].inlined == (i + 1 < nr_wanted), "%s: inlined %zu", stack->entry, i);
	}
}

SAMPLE_HELPER void sample_check_stacks(const char *root, const char *path, const int *lines)
{
	struct symbols *symbols = sample_open(root, path);

	for (size_t i = 0; i < NR_STACKS; i++)
		sample_check_stack(symbols, &sample_stacks[i], lines);
	symbols_free(symbols);
}

SAMPLE_HELPER bool sample_is_unknown(struct symbols *symbols, unsigned module, uint64_t offset)
{
	size_t nr_frames;
	const struct symbol_frame *frame =
		symbols_resolve(symbols, module, offset, false, &nr_frames);

	return nr_frames == 1 && !frame->function && !frame->file && !frame->line &&
	       !frame->column && !frame->inlined;
}

/* The outermost function, of module 1. */
SAMPLE_HELPER const char *sample_function_at(
	struct symbols *symbols, uint64_t offset, bool exact_pc)
{
	size_t nr_frames;
	const struct symbol_frame *frames =
		symbols_resolve(symbols, 1, offset, exact_pc, &nr_frames);

	return frames[nr_frames - 1].function;
}

/* What cannot be written or read fails the test. */
SAMPLE_HELPER void sample_write_file(const char *path, const void *bytes, size_t nr_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, nr_bytes) != (ssize_t)nr_bytes)
		printf("Bail out! cannot write %s\n", path);
	close(fd);
}

SAMPLE_HELPER uint8_t *sample_read_file(const char *path, size_t *nr_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {0};
	uint8_t *bytes;

	fstat(fd, &st);
	*nr_bytes = (size_t)st.st_size;
	bytes = malloc(*nr_bytes + 1);
	if (read(fd, bytes, *nr_bytes) != st.st_size)
		printf("Bail out! cannot read %s\n", path);
	close(fd);
	return bytes;
}

/* Runs the sample's entry points and fills in the offsets of sample_stacks. */
SAMPLE_HELPER void sample_run_all(const struct loaded *sample)
{
	for (size_t i = 0; i < NR_STACKS; i++)
		sample_stacks[i].offset = sample_run(sample, sample_stacks[i].entry);
}

#endif
