/* SPDX-License-Identifier: MIT */
/*
 * callee.h - which function a call instruction names.
 *
 * Read from the bytes of the file, with what the dynamic loader itself uses, so that it works in a
 * library without section headers. Addresses are those in the file.
 */
#ifndef LW_SNAPSHOT_CALLEE_H
#define LW_SNAPSHOT_CALLEE_H

#include "snapshot/symbols/image.h"
#include "snapshot/symbols/symtab.h"

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot;

struct callees {
	Elf *elf;
	uint64_t bias; /* what the symbol table adds to addresses in the file */
	bool is_read;  /* the rest is filled at the first question */
	struct image image;
	struct image_tables tables;
	struct slot *slots; /* sorted by address */
	size_t nr_slots, max_slots;
};

void callees_init(struct callees *callees, Elf *elf, uint64_t bias);
void callees_fini(struct callees *callees);

/* The raw name, as it stands in the file, of what the call before return_addr calls, or NULL. */
const char *callees_name(struct callees *callees, struct symtab *symtab, uint64_t return_addr);

/*
 * The machine's part, one file per architecture. What a call or a PLT stub leads to, as far as the
 * instructions say; unknown for anything else.
 */
enum target_kind {
	TARGET_UNKNOWN,
	TARGET_CODE, /* value: an address in the same file */
	TARGET_SLOT, /* value: the address of the GOT entry that holds the function's address */
	TARGET_PLT,  /* value: index of the relocation in DT_JMPREL */
};

struct target {
	enum target_kind kind;
	uint64_t value;
};

/* How the loader fills a GOT entry. */
enum slot_kind {
	SLOT_OTHER,
	SLOT_SYMBOL, /* with the address of a symbol */
	SLOT_IFUNC,  /* with what the function at the addend returns */
};

struct target callee_of_call(const struct image *image, uint64_t return_addr);
struct target callee_of_stub(const struct image *image, uint64_t addr);
enum slot_kind callee_slot_kind(uint32_t relocation_type);

#endif
