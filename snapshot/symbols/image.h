/* SPDX-License-Identifier: MIT */
/*
 * image.h - an ELF file as the dynamic loader sees it: segments and PT_DYNAMIC, no sections.
 *
 * Nothing in the file is believed: every access names address and length, and what does not lie
 * in the file part of one segment is not there. Addresses are those in the file.
 */
#ifndef LW_SNAPSHOT_IMAGE_H
#define LW_SNAPSHOT_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
	const uint8_t *bytes; /* the whole file; not ours */
	size_t nr_bytes;
	uint64_t headers; /* offset of the program headers in bytes */
	size_t nr_headers;
};

/* Where the loader's tables are; 0 where the file has none. */
struct image_tables {
	uint64_t symbols, strings, strings_bytes;
	uint64_t rela, rela_bytes;	   /* DT_RELA */
	uint64_t plt_rela, plt_rela_bytes; /* DT_JMPREL */
};

/* The bytes, at least the 64 of an ELF header, must outlive the image. */
void image_init(struct image *image, const uint8_t *bytes, size_t nr_bytes);

/* The bytes at an address, of any alignment; NULL unless all of them are in the file. */
const uint8_t *image_at(const struct image *image, uint64_t addr, uint64_t nr_bytes);

/* False: out of the file. */
bool image_read(const struct image *image, uint64_t addr, void *to, size_t nr_bytes);

void image_find_tables(const struct image *image, struct image_tables *tables);

/* Entry of DT_SYMTAB; NULL when it has no name or is out of the file. */
const char *image_symbol_name(
	const struct image *image, const struct image_tables *tables, uint32_t symbol);

#endif
