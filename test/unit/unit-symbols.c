/* SPDX-License-Identifier: MIT */
/*
 * unit-symbols.c - names and lines for addresses, against objects whose source says what is right.
 *
 * The samples (see symbols/) are loaded and run here: their calls leave real return addresses and
 * the line of each call. Copies of the same object (stripped, with split debug information, without
 * section headers, cut off, with flipped bits) are only read, at the same offsets.
 *
 * usage: unit-symbols FOLDER, where the samples are
 */
#include "snapshot/symbols/symbols.h"
#include "test/unit/symbols/sample.h"
#include "test/unit/tap.h"

#include <dlfcn.h>
#include <elf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PATH_BYTES = 4096,
	MAX_WANTED = 3,		/* frames of one stack */
	NR_CUTS = 64,
	NR_FLIPPED = 200,
	FLIPS = 32,		/* bits in one copy */
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
	uint64_t offset;	/* of the return address; found by running it */
};

static struct stack stacks[] = {
	{"sample_outer", {{"inner", "sample.c", SAMPLE_INNER}, {"middle", "sample.c", SAMPLE_MIDDLE},
			{"sample_outer", "sample.c", SAMPLE_OUTER}}, 0},
	{"sample_hidden", {{"hidden", "sample.c", SAMPLE_HIDDEN}}, 0},
	{"sample_alias", {{"sample_alias", "sample.c", SAMPLE_ALIAS}}, 0},
	{"sample_method", {{"shapes::Shape::area(int, shapes::Shape const&) const", "sample.cc",
			SAMPLE_METHOD}}, 0},
	{"sample_constructor", {{"shapes::Shape::Shape(int, char const*)", "sample.cc",
			SAMPLE_CONSTRUCTOR}}, 0},
	{"sample_box", {{"shapes::(anonymous namespace)::Box<int>::fill(int)", "sample.cc",
			SAMPLE_BOX}}, 0},
	{"sample_twice", {{"long shapes::twice<long>(long)", "sample.cc", SAMPLE_TWICE},
			{"sample_twice", "sample.cc", SAMPLE_USER}}, 0},
};

enum { NR_STACKS = sizeof(stacks) / sizeof(stacks[0]) };

/* A loaded sample. */
struct loaded {
	char path[PATH_BYTES];
	void *handle;
	uint64_t base;
	const int *lines;
};

static char folder[PATH_BYTES - 64], scratch[] = "/tmp/unit-symbols-XXXXXX";

static uint64_t offset_in(const struct loaded *sample, const void *addr)
{
	return (uintptr_t)addr - sample->base;
}

static uint64_t offset_of(const struct loaded *sample, const char *name)
{
	return offset_in(sample, dlsym(sample->handle, name));
}

/* Where the call of sample_note() that the entry point leads to returns to. */
static uint64_t run(const struct loaded *sample, const char *entry)
{
	const void **returned_to = dlsym(sample->handle, "sample_returned_to");
	int (*function)(int);

	*(void **)&function = dlsym(sample->handle, entry);
	function(1);
	return offset_in(sample, *returned_to);
}

static bool load(struct loaded *sample, const char *name)
{
	Dl_info info;

	snprintf(sample->path, sizeof(sample->path), "%s/%s", folder, name);
	sample->handle = dlopen(sample->path, RTLD_NOW | RTLD_LOCAL);
	if (!ok(sample->handle, "%s loads", name))
		return false;
	dladdr(dlsym(sample->handle, "sample_note"), &info);
	sample->base = (uintptr_t)info.dli_fbase;
	sample->lines = dlsym(sample->handle, "sample_lines");
	return true;
}

static struct symbols *open_one(const char *root, const char *path)
{
	struct symbols *symbols = symbols_new(root);

	symbols_module(symbols, 1, path, NULL, 0);
	return symbols;
}

static bool ends_with(const char *text, const char *end)
{
	size_t text_bytes = text ? strlen(text) : 0, end_bytes = strlen(end);

	return text_bytes > end_bytes && text[text_bytes - end_bytes - 1] == '/' &&
	       !strcmp(text + text_bytes - end_bytes, end);
}

static void check_stack(struct symbols *symbols, const struct stack *stack, const int *lines)
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
		is_u64(frames[i].line, (unsigned)lines[wanted->place], "%s: line %zu",
				stack->entry, i);
		ok(frames[i].inlined == (i + 1 < nr_wanted), "%s: inlined %zu", stack->entry, i);
	}
}

static void check_stacks(const char *root, const char *path, const int *lines)
{
	struct symbols *symbols = open_one(root, path);

	for (size_t i = 0; i < NR_STACKS; i++)
		check_stack(symbols, &stacks[i], lines);
	symbols_free(symbols);
}

static bool is_unknown(struct symbols *symbols, unsigned module, uint64_t offset)
{
	size_t nr_frames;
	const struct symbol_frame *frame =
			symbols_resolve(symbols, module, offset, false, &nr_frames);

	return nr_frames == 1 && !frame->function && !frame->file && !frame->line &&
	       !frame->column && !frame->inlined;
}

static const char *function_at(struct symbols *symbols, uint64_t offset, bool exact_pc)
{
	size_t nr_frames;
	const struct symbol_frame *frames =
			symbols_resolve(symbols, 1, offset, exact_pc, &nr_frames);

	return frames[nr_frames - 1].function;
}

static void test_exact(const struct loaded *sample)
{
	struct symbols *symbols = open_one("", sample->path);
	uint64_t start = offset_of(sample, "sample_note");
	const char *before = function_at(symbols, start, false);

	is_str(function_at(symbols, start, true), "sample_note", "an exact pc at a function's start");
	ok(!before || strcmp(before, "sample_note"), "a return address there is not of the function");
	is_str(function_at(symbols, start + 1, false), "sample_note", "one byte on, it is");
	ok(function_at(symbols, start + 1, false) == function_at(symbols, start, true),
			"the same string for the same place");
	is_str(function_at(symbols, offset_of(sample, "sample_unsized") + 2, true), "sample_unsized",
			"assembler without a size");
	ok(is_unknown(symbols, 1, 0), "the offset 0");
	ok(is_unknown(symbols, 1, UINT64_MAX), "the last offset");
	ok(is_unknown(symbols, 2, start), "a module nobody told");
	symbols_free(symbols);
}

/* Only exported names are left, and no address belongs to a name that it is not inside of. */
static void test_stripped(const struct loaded *sample)
{
	char path[PATH_BYTES];
	struct symbols *symbols;
	uint64_t unsized = offset_of(sample, "sample_unsized");
	size_t nr_frames;
	const struct symbol_frame *frame;

	snprintf(path, sizeof(path), "%s/sample-stripped.so", folder);
	symbols = open_one("", path);
	frame = symbols_resolve(symbols, 1, stacks[0].offset, false, &nr_frames);
	is_u64(nr_frames, 1, "stripped: one frame");
	is_str(frame->function, "sample_outer", "stripped: exported function");
	ok(!frame->file && !frame->line, "stripped: no line");
	ok(is_unknown(symbols, 1, stacks[1].offset), "stripped: a private function has no name");
	is_str(function_at(symbols, unsized, true), "sample_unsized", "stripped: no size, start");
	is_str(function_at(symbols, unsized + 3, true), "sample_unsized", "stripped: no size, end");
	ok(is_unknown(symbols, 1, unsized + 64), "stripped: no size, beyond the section");
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
	ok(!is_unknown(symbols, 1, stacks[0].offset), "its own build id");
	ok(!is_unknown(symbols, 2, stacks[0].offset), "the beginning of it");
	ok(is_unknown(symbols, 3, stacks[0].offset), "a longer one");
	ok(is_unknown(symbols, 4, stacks[0].offset), "another one");
	ok(!symbols_callee(symbols, 4, stacks[0].offset), "another one: no callee");
	ok(is_unknown(symbols, 5, stacks[0].offset), "the last word about a module counts");
	elf_end(elf);
	close(fd);
	symbols_free(symbols);
}

static void write_file(const char *path, const void *bytes, size_t nr_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, nr_bytes) != (ssize_t)nr_bytes)
		printf("Bail out! cannot write %s\n", path);
	close(fd);
}

static uint8_t *read_file(const char *path, size_t *nr_bytes)
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

static void test_no_object(void)
{
	static const char *const paths[] = {"linux-vdso.so.1", "[vdso]", "", "/", "/dev/null",
		"/dev/zero", "/no/such/file", "/tmp/gone (deleted)"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct symbols *symbols = open_one("", paths[i]);

		ok(is_unknown(symbols, 1, 0x1000) && !symbols_callee(symbols, 1, 0x1000),
				"not a file to read: '%s'", paths[i]);
		symbols_free(symbols);
	}
	snprintf(path, sizeof(path), "%s/fifo", scratch);
	if (ok(!mkfifo(path, 0600), "make a fifo")) {
		struct symbols *symbols = open_one("", path);

		ok(is_unknown(symbols, 1, 0x1000), "a fifo does not block");
		symbols_free(symbols);
		unlink(path);
	}
}

static void test_callees(const struct loaded *sample, const char *name)
{
	struct symbols *symbols = open_one("", sample->path);
	const void **hidden = dlsym(sample->handle, "sample_hidden_returned_to");

	for (size_t i = 0; i < NR_STACKS; i++)
		is_str(symbols_callee(symbols, 1, run(sample, stacks[i].entry)), "sample_note",
				"%s: %s calls", name, stacks[i].entry);
	is_str(symbols_callee(symbols, 1, offset_in(sample, *hidden)), "hidden",
			"%s: a direct call", name);
	ok(!symbols_callee(symbols, 1, offset_of(sample, "sample_unsized") + 3), "%s: no call", name);
	ok(!symbols_callee(symbols, 1, 0) && !symbols_callee(symbols, 1, 3) &&
			!symbols_callee(symbols, 1, UINT64_MAX), "%s: no code", name);
	symbols_free(symbols);
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

	snprintf(path, sizeof(path), "%s/sample-stripped.so", folder);
	bytes = read_file(path, &nr_bytes);
	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	snprintf(path, sizeof(path), "%s/no-sections.so", scratch);
	write_file(path, bytes, nr_bytes);
	symbols = open_one("", path);
	is_str(symbols_callee(symbols, 1, stacks[0].offset), "sample_note", "no sections: callee");
	is_str(symbols_callee(symbols, 1, stacks[1].offset), "sample_note", "no sections: private");
	ok(!symbols_callee(symbols, 1, offset_in(sample, *hidden)), "no sections: unknown callee");
	is_str(function_at(symbols, stacks[0].offset, false), "sample_outer", "no sections: name");
	symbols_free(symbols);
	unlink(path);
	free(bytes);
}

static void test_fixed(const struct loaded *sample)
{
	char path[PATH_BYTES];
	struct stack stack = stacks[0];
	struct symbols *symbols;
	void *addr = NULL;
	FILE *program;

	snprintf(path, sizeof(path), "%s/sample-fixed", folder);
	program = popen(path, "r");
	ok(program && fscanf(program, "%p", &addr) == 1, "a program at fixed addresses runs");
	pclose(program);
	stack.offset = (uintptr_t)addr;
	symbols = open_one("", path);
	check_stack(symbols, &stack, sample->lines);
	is_str(symbols_callee(symbols, 1, stack.offset), "sample_note", "fixed: a direct call");
	symbols_free(symbols);
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

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	bytes = read_file(path, &nr_bytes);
	snprintf(path, sizeof(path), "%s/%s/%s", scratch, to, name);
	write_file(path, bytes, nr_bytes);
	free(bytes);
}

/* The module and its debug file are looked for inside the root, each where it would be outside. */
static void test_root(const struct loaded *sample)
{
	static const char *const folders[] = {"app", "usr", "usr/lib", "usr/lib/debug",
		"usr/lib/debug/app"};
	char path[PATH_BYTES];
	struct symbols *symbols;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_folder(folders[i]);
	copy_into("app", "sample-split.so");
	symbols = open_one(scratch, "/app/sample-split.so");
	is_str(function_at(symbols, stacks[0].offset, false), "sample_outer", "a module in a root");
	symbols_free(symbols);
	copy_into("usr/lib/debug/app", "sample-split.debug");
	check_stacks(scratch, "/app/sample-split.so", sample->lines);
	snprintf(path, sizeof(path), "%s/usr/lib/debug/app/sample-split.debug", scratch);
	unlink(path);
	copy_into("app", "sample-split.debug");
	check_stacks(scratch, "/app/sample-split.so", sample->lines);
	check_stacks("/no/such/root", sample->path, sample->lines);
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
	struct symbols *symbols = open_one("", path);
	size_t nr_frames, nr_answers = 0;

	for (size_t i = 0; i < NR_STACKS; i++) {
		nr_answers += symbols_resolve(symbols, 1, stacks[i].offset, false, &nr_frames) &&
			      nr_frames > 0;
		symbols_callee(symbols, 1, stacks[i].offset);
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
	uint8_t *bytes = read_file(sample->path, &nr_bytes);

	snprintf(path, sizeof(path), "%s/damaged.so", scratch);
	for (size_t i = 0; i < NR_CUTS; i++) {
		write_file(path, bytes, nr_bytes * i / NR_CUTS);
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
		write_file(path, copy, nr_bytes);
		nr_answers += ask_all(path, nr_bytes);
		free(copy);
	}
	is_u64(nr_answers, NR_FLIPPED * NR_STACKS, "files with flipped bits answer");
	unlink(path);
	free(bytes);
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

	if (argc != 2 || !mkdtemp(scratch))
		return 2;
	snprintf(folder, sizeof(folder), "%s", argv[1]);
	test_debuginfod();
	if (!load(&sample, "sample.so") || !load(&noplt, "sample-noplt.so") ||
			!load(&ibt, "sample-ibt.so"))
		return done();
	for (size_t i = 0; i < NR_STACKS; i++)
		stacks[i].offset = run(&sample, stacks[i].entry);
	check_stacks("", sample.path, sample.lines);
	snprintf(path, sizeof(path), "%s/sample-split.so", folder);
	check_stacks("", path, sample.lines);
	test_exact(&sample);
	test_stripped(&sample);
	test_build_id(&sample);
	test_no_object();
	test_callees(&sample, "plt");
	test_callees(&noplt, "no plt");
	test_callees(&ibt, "ibt");
	test_no_sections(&sample);
	test_fixed(&sample);
	test_root(&sample);
	test_damaged(&sample);
	rmdir(scratch);
	return done();
}
