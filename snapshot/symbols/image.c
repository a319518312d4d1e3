/* SPDX-License-Identifier: MIT */
/*
 * image.c - bounds-checked access to a file by virtual address.
 *
 * libelf knows these structures too, but by section; stripped files may have none. Structures are
 * copied out before they are looked at, since a hostile file aligns nothing.
 */
#include "snapshot/symbols/image.h"

#include <string.h>

void image_init(struct image *image, const uint8_t *bytes, size_t nr_bytes)
{
	Elf64_Ehdr header;

	*image = (struct image){.bytes = bytes, .nr_bytes = nr_bytes};
	memcpy(&header, bytes, sizeof(header));
	if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > nr_bytes)
		return;
	image->headers = header.e_phoff;
	image->nr_headers = (nr_bytes - header.e_phoff) / sizeof(Elf64_Phdr);
	if (image->nr_headers > header.e_phnum)
		image->nr_headers = header.e_phnum;
}

static void segment_at(const struct image *image, size_t index, Elf64_Phdr *segment)
{
	memcpy(segment, image->bytes + image->headers + index * sizeof(*segment), sizeof(*segment));
}

const uint8_t *image_at(const struct image *image, uint64_t addr, uint64_t nr_bytes)
{
	Elf64_Phdr segment;

	for (size_t i = 0; i < image->nr_headers; i++) {
		uint64_t at;

		segment_at(image, i, &segment);
		at = addr - segment.p_vaddr;
		if (segment.p_type != PT_LOAD || addr < segment.p_vaddr || at >= segment.p_filesz)
			continue;
		if (nr_bytes > segment.p_filesz - at || segment.p_offset > image->nr_bytes ||
			at > image->nr_bytes - segment.p_offset ||
			nr_bytes > image->nr_bytes - segment.p_offset - at)
			return NULL;
		return image->bytes + segment.p_offset + at;
	}
	return NULL;
}

bool image_read(const struct image *image, uint64_t addr, void *to, size_t nr_bytes)
{
	const uint8_t *from = image_at(image, addr, nr_bytes);

	if (from)
		memcpy(to, from, nr_bytes);
	return from;
}

static void note_entry(struct image_tables *tables, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		tables->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		tables->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		tables->strings_bytes = entry->d_un.d_val;
		break;
	case DT_RELA:
		tables->rela = entry->d_un.d_ptr;
		break;
	case DT_RELASZ:
		tables->rela_bytes = entry->d_un.d_val;
		break;
	case DT_JMPREL:
		tables->plt_rela = entry->d_un.d_ptr;
		break;
	case DT_PLTRELSZ:
		tables->plt_rela_bytes = entry->d_un.d_val;
		break;
	default:
		break;
	}
}

void image_find_tables(const struct image *image, struct image_tables *tables)
{
	Elf64_Phdr segment = {0};
	Elf64_Dyn entry;
	size_t i = 0;

	*tables = (struct image_tables){0};
	while (i < image->nr_headers && segment.p_type != PT_DYNAMIC)
		segment_at(image, i++, &segment);
	if (segment.p_type != PT_DYNAMIC)
		return;
	for (uint64_t at = 0; at + sizeof(entry) <= segment.p_filesz; at += sizeof(entry)) {
		if (!image_read(image, segment.p_vaddr + at, &entry, sizeof(entry)) ||
			entry.d_tag == DT_NULL)
			return;
		note_entry(tables, &entry);
	}
}

const char *image_symbol_name(
	const struct image *image, const struct image_tables *tables, uint32_t symbol)
{
	const char *strings = (const char *)image_at(image, tables->strings, tables->strings_bytes);
	Elf64_Sym entry;

	if (!strings || !tables->symbols ||
		!image_read(
			image, tables->symbols + symbol * sizeof(entry), &entry, sizeof(entry)) ||
		!entry.st_name || entry.st_name >= tables->strings_bytes ||
		!memchr(strings + entry.st_name, 0, tables->strings_bytes - entry.st_name))
		return NULL;
	return strings + entry.st_name;
}
