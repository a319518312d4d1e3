/* SPDX-License-Identifier: MIT */
/*
 * callee_x86_64.c - calls, PLT stubs and relocations of x86-64.
 *
 * Instructions cannot be decoded backwards for certain. The two forms looked for (a direct call of
 * 5 bytes, a call through the GOT of 6) exclude each other, and a chance match inside another call
 * gives a displacement whose target is, in practice, neither a function nor a stub.
 *
 * Stubs, each with or without endbr64: `jmp *slot(%rip)` with or without bnd (.plt, .plt.sec,
 * .plt.got; mold loads an index into r11 first), and `push index; jmp` (.plt under IBT, where the
 * indirect jump is in .plt.sec).
 */
#include "snapshot/symbols/callee.h"

#include <string.h>

enum {
	CALL_BYTES = 5,	     /* e8 rel32 */
	CALL_SLOT_BYTES = 6, /* ff 15 rel32 */
	JUMP_SLOT_BYTES = 6, /* ff 25 rel32 */
	PUSH_BYTES = 5,	     /* 68 imm32 */
};

static uint64_t relative(uint64_t base, const uint8_t *displacement)
{
	int32_t value;

	memcpy(&value, displacement, sizeof(value));
	return base + (uint64_t)(int64_t)value;
}

struct target callee_of_call(const struct image *image, uint64_t return_addr)
{
	const uint8_t *code = image_at(image, return_addr - CALL_BYTES, CALL_BYTES);

	if (code && code[0] == 0xe8)
		return (struct target){TARGET_CODE, relative(return_addr, code + 1)};
	code = image_at(image, return_addr - CALL_SLOT_BYTES, CALL_SLOT_BYTES);
	if (code && code[0] == 0xff && code[1] == 0x15)
		return (struct target){TARGET_SLOT, relative(return_addr, code + 2)};
	return (struct target){TARGET_UNKNOWN, 0};
}

/* The address after this instruction if it stands at addr, else addr. */
static uint64_t skip(const struct image *image, uint64_t addr, const char *instruction,
	size_t opcode_bytes, size_t all_bytes)
{
	const uint8_t *code = image_at(image, addr, all_bytes);

	return code && !memcmp(code, instruction, opcode_bytes) ? addr + all_bytes : addr;
}

static uint64_t skip_bnd(const struct image *image, uint64_t addr)
{
	return skip(image, addr, "\xf2", 1, 1);
}

struct target callee_of_stub(const struct image *image, uint64_t addr)
{
	const uint8_t *code;
	uint64_t jump;

	addr = skip(image, addr, "\xf3\x0f\x1e\xfa", 4, 4); /* endbr64 */
	jump = skip(image, addr, "\x41\xbb", 2, 6);	    /* mov $index, %r11d */
	jump = skip_bnd(image, jump);
	code = image_at(image, jump, JUMP_SLOT_BYTES);
	if (code && code[0] == 0xff && code[1] == 0x25)
		return (struct target){TARGET_SLOT, relative(jump + JUMP_SLOT_BYTES, code + 2)};
	code = image_at(image, addr, PUSH_BYTES);
	if (code && code[0] == 0x68) {
		const uint8_t *next = image_at(image, skip_bnd(image, addr + PUSH_BYTES), 1);

		if (next && *next == 0xe9)
			return (struct target){TARGET_PLT, (uint32_t)relative(0, code + 1)};
	}
	return (struct target){TARGET_UNKNOWN, 0};
}

enum slot_kind callee_slot_kind(uint32_t relocation_type)
{
	switch (relocation_type) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return SLOT_SYMBOL;
	case R_X86_64_IRELATIVE:
		return SLOT_IFUNC;
	default:
		return SLOT_OTHER;
	}
}
