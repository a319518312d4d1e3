/* SPDX-License-Identifier: MIT */
/*
 * cfi.c - finds and runs the call frame instructions of a PC: .eh_frame_hdr -> FDE -> CIE -> row.
 *
 * Runs once per distinct PC, so it is plain rather than fast. The tables belong to mapped modules
 * and are trusted as the loader trusts them, but no read leaves the module, and none of an entry
 * leaves the entry: damage ends the search and not the program.
 */
#include "preload/unwind/cfi.h"

#include <dlfcn.h>
#include <string.h>

/* DW_EH_PE_*: how an address is written. */
enum {
	PE_OMIT = 0xff, PE_ABSPTR = 0x00, PE_ULEB = 0x01, PE_UDATA2 = 0x02, PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04, PE_SLEB = 0x09, PE_SDATA2 = 0x0a, PE_SDATA4 = 0x0b, PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_FORMAT = 0x0f, PE_BASE = 0x70, PE_INDIRECT = 0x80,
};

enum { MAX_REMEMBERED = 2 /* compilers nest no deeper; a row is 450 bytes, and handlers' stacks are small */ };

struct reader {
	const uint8_t *at, *end;
	bool is_bad;
};

/* Where a module is mapped: entries lie in it, whatever the numbers in them say. */
struct range {
	const uint8_t *start, *end;
};

struct cie {
	const uint8_t *instructions, *end;
	uint64_t code_align;
	int64_t data_align;
	uint32_t return_register;
	uint8_t pointer_encoding;
	bool has_augmentation_data, is_signal_frame;
};

static uint64_t read_fixed(struct reader *r, unsigned bytes)
{
	uint64_t value = 0;

	if (r->is_bad || (size_t)(r->end - r->at) < bytes) {
		r->is_bad = true;
		return 0;
	}
	memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

static uint64_t read_uleb(struct reader *r)
{
	uint64_t value = 0;

	if (LW_LIKELY(r->at < r->end && !(*r->at & 0x80) && !r->is_bad)) /* nearly all are one byte */
		return *r->at++;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = (uint8_t)read_fixed(r, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80) || r->is_bad)
			return value;
	}
}

static int64_t read_sleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;;) {
		uint8_t byte = (uint8_t)read_fixed(r, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80 && !r->is_bad)
			continue;
		if (shift < 64 && byte & 0x40)
			value |= ~UINT64_C(0) << shift;
		return (int64_t)value;
	}
}

static uint64_t read_encoded(struct reader *r, uint8_t encoding, uintptr_t data_base)
{
	uintptr_t here = (uintptr_t)r->at;
	uint64_t value;

	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		value = read_fixed(r, 8);
		break;
	case PE_UDATA4:
		value = read_fixed(r, 4);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int64_t)(int32_t)read_fixed(r, 4);
		break;
	case PE_UDATA2:
		value = read_fixed(r, 2);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int64_t)(int16_t)read_fixed(r, 2);
		break;
	case PE_ULEB:
		value = read_uleb(r);
		break;
	case PE_SLEB:
		value = (uint64_t)read_sleb(r);
		break;
	default:
		r->is_bad = true;
		return 0;
	}
	if ((encoding & PE_BASE) == PE_PCREL)
		value += here;
	else if ((encoding & PE_BASE) == PE_DATAREL)
		value += data_base;
	if (encoding & PE_INDIRECT) /* only personalities are written so, and nobody asks for those */
		r->is_bad = true;
	return value;
}

/* The length field of a CIE or FDE; the reader is left on its first byte after it. */
static bool open_entry(const uint8_t *entry, const struct range *module, struct reader *r)
{
	uint64_t length;

	if (entry < module->start || entry > module->end)
		return false;
	*r = (struct reader){ entry, module->end, false };
	length = read_fixed(r, 4);
	if (length == 0xffffffff)
		length = read_fixed(r, 8);
	if (r->is_bad || length > (uint64_t)(r->end - r->at))
		return false;
	r->end = r->at + length;
	return length != 0;
}

static bool parse_augmentation(struct reader *r, const char *letters, struct cie *cie)
{
	uint64_t bytes = read_uleb(r);
	const uint8_t *after;

	if (r->is_bad || bytes > (uint64_t)(r->end - r->at))
		return false;
	after = r->at + bytes;
	cie->has_augmentation_data = true;
	for (const char *l = letters + 1; *l; l++) {
		if (*l == 'R') {
			cie->pointer_encoding = (uint8_t)read_fixed(r, 1);
		} else if (*l == 'P') {
			uint8_t encoding = (uint8_t)read_fixed(r, 1);

			(void)read_encoded(r, encoding & (uint8_t)~PE_INDIRECT, 0);
		} else if (*l == 'L') {
			(void)read_fixed(r, 1);
		} else if (*l == 'S') {
			cie->is_signal_frame = true;
		} else {
			break; /* the data length skips what is unknown */
		}
	}
	r->at = after;
	return !r->is_bad;
}

static bool parse_cie(const uint8_t *entry, const struct range *module, struct cie *cie)
{
	struct reader r;
	const char *letters;
	uint8_t version;

	if (!open_entry(entry, module, &r) || read_fixed(&r, 4) != 0)
		return false;
	version = (uint8_t)read_fixed(&r, 1);
	letters = (const char *)r.at;
	if ((version != 1 && version != 3) || !memchr(letters, 0, (size_t)(r.end - r.at)))
		return false;
	r.at += strlen(letters) + 1;
	*cie = (struct cie){ .pointer_encoding = PE_ABSPTR };
	cie->code_align = read_uleb(&r);
	cie->data_align = read_sleb(&r);
	cie->return_register = (uint32_t)(version == 1 ? read_fixed(&r, 1) : read_uleb(&r));
	if (letters[0] == 'z' ? !parse_augmentation(&r, letters, cie) : letters[0] != 0)
		return false;
	cie->instructions = r.at;
	cie->end = r.end;
	return !r.is_bad;
}

/* An FDE: its range, its CIE, and its instructions. */
static bool parse_fde(const uint8_t *entry, const struct range *module, struct cie *cie,
		struct reader *instructions, uintptr_t *start, uintptr_t *end)
{
	struct reader r;
	const uint8_t *id_at;
	uint32_t back;

	if (!open_entry(entry, module, &r))
		return false;
	id_at = r.at;
	back = (uint32_t)read_fixed(&r, 4);
	if (!back || r.is_bad || back > (uint64_t)(id_at - module->start) ||
			!parse_cie(id_at - back, module, cie))
		return false;
	*start = read_encoded(&r, cie->pointer_encoding, 0);
	*end = *start + read_encoded(&r, cie->pointer_encoding & PE_FORMAT, 0);
	if (cie->has_augmentation_data) {
		uint64_t bytes = read_uleb(&r);

		if (r.is_bad || bytes > (uint64_t)(r.end - r.at))
			return false;
		r.at += bytes;
	}
	*instructions = r;
	return !r.is_bad;
}

/* Entries of the table are pairs: the start of a function and its FDE, both relative to hdr. */
static int32_t table_word(const uint8_t *table, uint64_t index)
{
	int32_t word;

	memcpy(&word, table + index * sizeof(word), sizeof(word));
	return word;
}

static const uint8_t *search_table(const uint8_t *hdr, const uint8_t *table, uint64_t nr_entries,
		uintptr_t pc)
{
	int64_t target = (int64_t)(pc - (uintptr_t)hdr);
	uint64_t low = 0, high = nr_entries;

	while (low < high) { /* the last entry whose start is not above pc */
		uint64_t middle = low + (high - low) / 2;

		if (table_word(table, 2 * middle) <= target)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? hdr + table_word(table, 2 * low - 1) : NULL;
}

/* Without a sorted table: one FDE after another, to the terminator or the end of the module. */
static const uint8_t *search_frames(const uint8_t *frames, const struct range *module, uintptr_t pc)
{
	struct reader r, instructions;
	struct cie cie;
	uintptr_t start, end;

	for (const uint8_t *entry = frames; open_entry(entry, module, &r); entry = r.end) {
		if (parse_fde(entry, module, &cie, &instructions, &start, &end) && pc >= start && pc < end)
			return entry;
	}
	return NULL;
}

static const uint8_t *find_fde(const uint8_t *hdr, const struct range *module, uintptr_t pc)
{
	struct reader r;
	uint64_t frames, nr_entries;

	if (!hdr || hdr < module->start || module->end - hdr < 4 || hdr[0] != 1)
		return NULL;
	r = (struct reader){ hdr + 4, module->end, false };
	frames = read_encoded(&r, hdr[1], (uintptr_t)hdr);
	if (hdr[2] != PE_OMIT && hdr[3] == (PE_DATAREL | PE_SDATA4)) {
		nr_entries = read_encoded(&r, hdr[2], (uintptr_t)hdr);
		if (r.is_bad || nr_entries > (uint64_t)(module->end - r.at) / 8)
			return NULL;
		return search_table(hdr, r.at, nr_entries, pc);
	}
	return hdr[1] == PE_OMIT ? NULL : search_frames((const uint8_t *)frames, module, pc);
}

/* Registers we do not follow, e.g. vector ones, are passed over. */
static void set_rule(struct lw_cfi_row *row, uint64_t reg, enum lw_cfi_rule_kind kind, int64_t value)
{
	if (reg < LW_NR_REGS)
		row->regs[reg] = (struct lw_cfi_rule){ kind, value, NULL };
}

static void restore_rule(struct lw_cfi_row *row, uint64_t reg, const struct lw_cfi_row *initial)
{
	if (reg < LW_NR_REGS)
		row->regs[reg] = initial->regs[reg];
}

/* A factored offset; what overflows is damage, but not ours to trap on. */
static int64_t scale(uint64_t factored, int64_t factor)
{
	return (int64_t)(factored * (uint64_t)factor);
}

static void set_expression(struct lw_cfi_row *row, struct reader *r, enum lw_cfi_rule_kind kind)
{
	uint64_t reg = read_uleb(r);
	uint64_t bytes = read_uleb(r);

	if (r->is_bad || bytes > (uint64_t)(r->end - r->at)) {
		r->is_bad = true;
		return;
	}
	if (reg < LW_NR_REGS)
		row->regs[reg] = (struct lw_cfi_rule){ kind, (int64_t)bytes, r->at };
	r->at += bytes;
}

static void set_cfa_expression(struct lw_cfi_row *row, struct reader *r)
{
	uint64_t bytes = read_uleb(r);

	if (r->is_bad || bytes > (uint64_t)(r->end - r->at)) {
		r->is_bad = true;
		return;
	}
	row->cfa_is_expression = true;
	row->cfa_offset = (int64_t)bytes;
	row->cfa_expression = r->at;
	r->at += bytes;
}

static void set_cfa(struct lw_cfi_row *row, uint64_t reg, int64_t offset)
{
	row->cfa_is_expression = false;
	row->cfa_register = (uint32_t)reg;
	row->cfa_offset = offset;
}

struct machine {
	struct lw_cfi_row *row;
	struct lw_cfi_row initial;
	struct lw_cfi_row remembered[MAX_REMEMBERED];
	unsigned nr_remembered;
	const struct cie *cie;
	uintptr_t location, pc;
};

/* DW_CFA_* instructions of the extended form (top two bits 0), except those that move the location. */
static bool run_extended(struct machine *m, struct reader *r, uint8_t op)
{
	struct lw_cfi_row *row = m->row;
	int64_t factor = m->cie->data_align;
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
		return true;
	case 0x05: /* offset_extended */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_OFFSET, scale(read_uleb(r), factor));
		return true;
	case 0x06: /* restore_extended */
		reg = read_uleb(r);
		restore_rule(row, reg, &m->initial);
		return true;
	case 0x07: /* undefined */
		set_rule(row, read_uleb(r), LW_CFI_UNDEFINED, 0);
		return true;
	case 0x08: /* same_value */
		set_rule(row, read_uleb(r), LW_CFI_SAME, 0);
		return true;
	case 0x09: /* register */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_REGISTER, (int64_t)read_uleb(r));
		return true;
	case 0x0a: /* remember_state */
		if (m->nr_remembered == MAX_REMEMBERED)
			return false;
		m->remembered[m->nr_remembered++] = *row;
		return true;
	case 0x0b: /* restore_state */
		if (!m->nr_remembered)
			return false;
		*row = m->remembered[--m->nr_remembered];
		return true;
	case 0x0c: /* def_cfa */
		reg = read_uleb(r);
		set_cfa(row, reg, (int64_t)read_uleb(r));
		return true;
	case 0x0d: /* def_cfa_register */
		row->cfa_register = (uint32_t)read_uleb(r);
		return !row->cfa_is_expression;
	case 0x0e: /* def_cfa_offset */
		row->cfa_offset = (int64_t)read_uleb(r);
		return !row->cfa_is_expression;
	case 0x0f: /* def_cfa_expression */
		set_cfa_expression(row, r);
		return true;
	case 0x10: /* expression */
		set_expression(row, r, LW_CFI_EXPRESSION);
		return true;
	case 0x11: /* offset_extended_sf */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_OFFSET, scale((uint64_t)read_sleb(r), factor));
		return true;
	case 0x12: /* def_cfa_sf */
		reg = read_uleb(r);
		set_cfa(row, reg, scale((uint64_t)read_sleb(r), factor));
		return true;
	case 0x13: /* def_cfa_offset_sf */
		row->cfa_offset = scale((uint64_t)read_sleb(r), factor);
		return !row->cfa_is_expression;
	case 0x14: /* val_offset */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_VAL_OFFSET, scale(read_uleb(r), factor));
		return true;
	case 0x15: /* val_offset_sf */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_VAL_OFFSET, scale((uint64_t)read_sleb(r), factor));
		return true;
	case 0x16: /* val_expression */
		set_expression(row, r, LW_CFI_VAL_EXPRESSION);
		return true;
	case 0x2e: /* GNU_args_size */
		(void)read_uleb(r);
		return true;
	case 0x2f: /* GNU_negative_offset_extended */
		reg = read_uleb(r);
		set_rule(row, reg, LW_CFI_OFFSET, scale(-read_uleb(r), factor));
		return true;
	default:
		return false;
	}
}

/* Runs instructions until the location passes pc. False: one we do not know, or damage. */
static bool run(struct machine *m, struct reader *r)
{
	while (r->at < r->end && !r->is_bad) {
		uint8_t op = *r->at++;
		uint8_t low = op & 0x3f;
		uint64_t advance;

		if (op >> 6 == 2) {
			set_rule(m->row, low, LW_CFI_OFFSET, scale(read_uleb(r), m->cie->data_align));
			continue;
		}
		if (op >> 6 == 3) {
			restore_rule(m->row, low, &m->initial);
			continue;
		}
		if (op >> 6 == 1)
			advance = low * m->cie->code_align;
		else if (op >= 0x02 && op <= 0x04) /* advance_loc1, 2, 4 */
			advance = read_fixed(r, 1u << (op - 2)) * m->cie->code_align;
		else if (op == 0x01) /* set_loc */
			advance = read_encoded(r, m->cie->pointer_encoding, 0) - m->location;
		else if (run_extended(m, r, op))
			continue;
		else
			return false;
		if (m->location + advance > m->pc)
			return !r->is_bad;
		m->location += advance;
	}
	return !r->is_bad;
}

bool lw_cfi_function(uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
	struct dl_find_object object;
	struct reader instructions;
	struct range module;
	const uint8_t *fde;
	struct cie cie;

	if (_dl_find_object((void *)pc, &object))
		return false;
	module = (struct range){ object.dlfo_map_start, object.dlfo_map_end };
	fde = find_fde(object.dlfo_eh_frame, &module, pc);
	return fde && parse_fde(fde, &module, &cie, &instructions, start, end) && pc >= *start && pc < *end;
}

bool lw_cfi_find(uintptr_t pc, struct lw_cfi_row *row)
{
	struct dl_find_object object;
	struct reader fde_instructions, cie_instructions;
	struct machine m;
	struct cie cie;
	struct range module;
	const uint8_t *fde;
	uintptr_t start, end;

	if (_dl_find_object((void *)pc, &object))
		return false;
	module = (struct range){ object.dlfo_map_start, object.dlfo_map_end };
	fde = find_fde(object.dlfo_eh_frame, &module, pc);
	if (!fde || !parse_fde(fde, &module, &cie, &fde_instructions, &start, &end) || pc < start ||
			pc >= end)
		return false;
	memset(row, 0, sizeof(*row));
	row->is_signal_frame = cie.is_signal_frame;
	row->return_register = cie.return_register;
	m.row = row;
	m.nr_remembered = 0;
	m.cie = &cie;
	m.location = start;
	m.pc = UINTPTR_MAX; /* all of the CIE's */
	memset(&m.initial, 0, sizeof(m.initial));
	cie_instructions = (struct reader){ cie.instructions, cie.end, false };
	if (!run(&m, &cie_instructions))
		return false;
	m.initial = *row;
	m.pc = pc;
	return run(&m, &fde_instructions);
}
