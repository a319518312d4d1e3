/* SPDX-License-Identifier: MIT */
/*
 * unit-cfi-parser.c - the unwind tables of libc, copied to memory of their own and then damaged, give
 * rows or no rows, but no read outside of the copy (a sanitizer sees to that).
 *
 * The parser finds modules by _dl_find_object(), so it is compiled into this test with another one,
 * which knows one module: the copy. All addresses in the tables are relative to the tables, hence the copy
 * describes code that would lie as far from it as libc's code from libc's tables.
 */
#include "test/unit/tap.h"

#include <dlfcn.h>
#include <stdlib.h>

static int find_copy(void *pc, struct dl_find_object *object);

#define _dl_find_object find_copy
#include "preload/unwind/cfi.c"
#undef _dl_find_object

enum { NR_DAMAGES = 100000, MAX_FLIPS = 6, NR_LINEAR = 60 };

static const uint8_t *original; /* .eh_frame_hdr and .eh_frame behind it, as libc has them */
static uint8_t *copy;
static size_t nr_bytes;
static bool is_original; /* the next search is in libc itself */
static uint64_t random_state = 99;

static uint32_t any(uint64_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % below);
}

static int find_copy(void *pc, struct dl_find_object *object)
{
	if (is_original)
		return _dl_find_object(pc, object);
	memset(object, 0, sizeof(*object));
	object->dlfo_map_start = copy;
	object->dlfo_map_end = copy + nr_bytes;
	object->dlfo_eh_frame = copy;
	return 0;
}

/* Where the frames of the real tables end: at an entry of no length. */
static const uint8_t *end_of_frames(const uint8_t *frames)
{
	uint32_t length;

	for (;; frames += 4 + length) {
		memcpy(&length, frames, 4);
		if (!length)
			return frames + 4;
	}
}

static bool make_copy(void)
{
	struct dl_find_object object;
	struct reader r;
	const uint8_t *frames;
	char *room;

	if (_dl_find_object((void *)(uintptr_t)&qsort, &object))
		return false;
	original = object.dlfo_eh_frame;
	r = (struct reader){ original + 4, object.dlfo_map_end, false };
	frames = (const uint8_t *)read_encoded(&r, original[1], (uintptr_t)original);
	if (frames < original || original[3] != (PE_DATAREL | PE_SDATA4))
		return false;
	nr_bytes = (size_t)(end_of_frames(frames) - original);
	room = malloc((uintptr_t)original % 8 + nr_bytes); /* as aligned as the original, nothing behind it */
	if (!room)
		return false;
	copy = (uint8_t *)room + (uintptr_t)original % 8;
	memcpy(copy, original, nr_bytes);
	return true;
}

static size_t nr_functions(void)
{
	uint32_t nr;

	memcpy(&nr, copy + 8, 4);
	return nr;
}

/* The first address of a function, in the copy's code. */
static uintptr_t function_at(size_t index)
{
	int32_t off;

	memcpy(&off, copy + 12 + index * 8, 4);
	return (uintptr_t)copy + (uintptr_t)(intptr_t)off;
}

static bool is_same_rule(const struct lw_cfi_rule *a, const struct lw_cfi_rule *b)
{
	return a->kind == b->kind && a->value == b->value && !a->expression == !b->expression;
}

static bool is_same_row(const struct lw_cfi_row *a, const struct lw_cfi_row *b)
{
	bool is_same = a->is_signal_frame == b->is_signal_frame && a->cfa_is_expression == b->cfa_is_expression &&
		       (a->cfa_is_expression || a->cfa_register == b->cfa_register) &&
		       a->cfa_offset == b->cfa_offset && a->return_register == b->return_register;

	for (size_t reg = 0; reg < LW_NR_REGS; reg++)
		is_same &= is_same_rule(&a->regs[reg], &b->regs[reg]);
	return is_same;
}

/* Does the copy say at pc what libc says there? */
static bool agrees(uintptr_t pc)
{
	struct lw_cfi_row ours = { 0 }, theirs = { 0 };
	bool has_ours = lw_cfi_find(pc, &ours), has_theirs;

	is_original = true;
	has_theirs = lw_cfi_find(pc - (uintptr_t)copy + (uintptr_t)original, &theirs);
	is_original = false;
	return has_ours == has_theirs && (!has_ours || is_same_row(&ours, &theirs));
}

static void test_whole(void)
{
	uint64_t nr_asked = 0, nr_wrong = 0;
	uint8_t table_encoding = copy[2];

	for (size_t i = 0; i + 1 < nr_functions(); i++) {
		uintptr_t start = function_at(i), end = function_at(i + 1);

		for (unsigned some = 0; some < 4; some++, nr_asked++)
			nr_wrong += !agrees(some ? start + any(end - start) : start);
	}
	is_u64(nr_wrong, 0, "%" PRIu64 " rows of the copy are libc's", nr_asked);
	nr_wrong = 0;
	copy[2] = PE_OMIT;
	for (unsigned some = 0; some < NR_LINEAR; some++)
		nr_wrong += !agrees(function_at(any(nr_functions())) + any(40));
	copy[2] = table_encoding;
	is_u64(nr_wrong, 0, "and so without the sorted table");
}

/* The offset of the entry that the sorted table gives for a function. */
static size_t entry_at(size_t index)
{
	int32_t off;

	memcpy(&off, copy + 12 + index * 8 + 4, 4);
	return (size_t)off;
}

/* A byte to damage: of the header, of the table, of the function's entry, of a CIE, or any. */
static size_t any_place(size_t function)
{
	size_t entry = entry_at(function), at;
	uint32_t back;

	switch (any(8)) {
	case 0:
		return any(12);
	case 1:
		return 12 + function * 8 + any(8);
	case 2:
		return any(nr_bytes);
	case 3:
		memcpy(&back, copy + entry + 4, 4);
		at = entry + 4 - back + any(24);
		break;
	default:
		at = entry + any(40);
	}
	return at < nr_bytes ? at : entry;
}

static void test_damage(void)
{
	struct lw_cfi_row row;
	uint64_t nr_rows = 0;

	for (unsigned i = 0; i < NR_DAMAGES; i++) {
		size_t function = any(nr_functions()), places[MAX_FLIPS];
		uintptr_t start = function_at(function);
		unsigned nr = 1 + any(MAX_FLIPS);

		for (unsigned k = 0; k < nr; k++)
			places[k] = any_place(function);
		for (unsigned k = 0; k < nr; k++)
			copy[places[k]] = (uint8_t)any(256);
		/* the linear search is slow where the table is damaged so as to say that there is none */
		if (copy[2] != PE_OMIT || any(500) == 0) {
			nr_rows += lw_cfi_find(start, &row);
			nr_rows += lw_cfi_find(start + any(100), &row);
		}
		for (unsigned k = 0; k < nr; k++)
			copy[places[k]] = original[places[k]];
	}
	ok(nr_rows > NR_DAMAGES / 10, "%u damaged tables do no harm (%" PRIu64 " rows were found in them)",
			NR_DAMAGES, nr_rows);
	ok(!memcmp(copy, original, nr_bytes), "the copy is whole again");
}

int main(void)
{
	if (!make_copy())
		return tap_skip_all("libc's unwind tables are not of the usual form");
	test_whole();
	test_damage();
	return done();
}
