/* SPDX-License-Identifier: MIT */
/*
 * cfi.h - the .eh_frame row of a PC: how to find the caller's frame from there.
 *
 * Two forms of the same row. `struct lw_cfi_row` is complete and is what the full evaluator steps
 * with. A packed rule is 24 bits and says what 99.9 % of compiled code needs: CFA = rsp or rbp plus
 * a constant, return address below it, rbp perhaps saved. lw_cfi_pack() gives LW_RULE_SLOW where 24
 * bits do not tell it all, and the unwinder then uses the full evaluator for that stack.
 *
 * Source: System V ABI AMD64 section 3.7 and figure 3.36 (DWARF register numbers), DWARF 4 section
 * 6.4, LSB 5.0 section 10.6 (.eh_frame, .eh_frame_hdr). Modules are found by _dl_find_object,
 * which takes no lock. Nothing here allocates; all of it may run inside any hook.
 */
#ifndef LW_UNWIND_CFI_H
#define LW_UNWIND_CFI_H

#include "preload/base/base.h"
#include "preload/base/sys_x86_64.h"

enum lw_cfi_rule_kind {
	LW_CFI_SAME,	   /* the register still holds the caller's value (also: nothing said) */
	LW_CFI_UNDEFINED,
	LW_CFI_OFFSET,	   /* saved at CFA + value */
	LW_CFI_VAL_OFFSET, /* is CFA + value */
	LW_CFI_REGISTER,   /* is in register `value` */
	LW_CFI_EXPRESSION, /* saved at the address the expression gives */
	LW_CFI_VAL_EXPRESSION,
};

struct lw_cfi_rule {
	enum lw_cfi_rule_kind kind;
	int64_t value;		  /* offset, register number, or length of the expression */
	const uint8_t *expression;
};

struct lw_cfi_row {
	bool is_signal_frame;	  /* augmentation 'S' */
	bool cfa_is_expression;
	uint32_t cfa_register;
	int64_t cfa_offset;	  /* or length of the expression */
	const uint8_t *cfa_expression;
	uint32_t return_register;
	struct lw_cfi_rule regs[LW_NR_REGS];
};

/* The row in force at pc (for a return address: pass it minus one). False: no unwind information. */
bool lw_cfi_find(uintptr_t pc, struct lw_cfi_row *row);

/* The function that pc lies in (for a return address: pass it minus one). False: not known. */
bool lw_cfi_function(uintptr_t pc, uintptr_t *start, uintptr_t *end);

/* ---- packed rules (cfi_x86_64.c) ---- */

enum lw_rule_type {
	LW_RULE_NONE,	  /* empty table entry */
	LW_RULE_SP,	  /* CFA = rsp + 8 * cfa */
	LW_RULE_FP,	  /* CFA = rbp + 8 * cfa */
	LW_RULE_FP_DEREF, /* CFA = *(rbp - 8 * cfa); rbp is saved at rbp + 0 (realigned stack) */
	LW_RULE_SIGNAL,	  /* the kernel's signal frame: registers are in the ucontext at rsp */
	LW_RULE_END,	  /* outermost frame, or no unwind information */
	LW_RULE_SLOW,	  /* needs the full evaluator */
};

/* rbp is saved among the first few words of a frame, so its place needs few bits */
enum {
	LW_RULE_TYPE_BITS = 3,
	LW_RULE_CFA_BITS = 14,
	LW_RULE_FP_BITS = 7,
	LW_RULE_BITS = LW_RULE_TYPE_BITS + LW_RULE_CFA_BITS + LW_RULE_FP_BITS,
};

/* type | cfa << 3 | fp << 17: rbp of the caller is at CFA - 8 * fp, 0: rbp is unchanged. */
LW_INLINE enum lw_rule_type lw_rule_type(uint32_t rule)
{
	return (enum lw_rule_type)(rule & 7);
}

LW_INLINE uint32_t lw_rule_cfa(uint32_t rule)
{
	return rule >> LW_RULE_TYPE_BITS & ((1u << LW_RULE_CFA_BITS) - 1);
}

LW_INLINE uint32_t lw_rule_fp(uint32_t rule)
{
	return rule >> (LW_RULE_TYPE_BITS + LW_RULE_CFA_BITS);
}

/* The packed rule of a pc; is_exact: pc is where a frame was interrupted, not a return address. */
uint32_t lw_cfi_pack(uintptr_t pc, bool is_exact);

/* Where the kernel's signal frame at rsp keeps the interrupted registers. */
struct lw_cfi_signal_slots {
	uintptr_t pc, sp, fp;
};
struct lw_cfi_signal_slots lw_cfi_signal_slots(uintptr_t sp);

/* Does the code at a return address only leave its function? */
bool lw_code_ends_after(uintptr_t pc);
/* Is the call before a return address one through a register or an object? */
bool lw_code_calls_indirectly(uintptr_t pc);
/* The function that the call before a return address names, behind its stub; 0: not to be seen. */
uintptr_t lw_code_call_target(uintptr_t pc);

/* Reads a word of a stack; false where it must not be read. */
typedef bool lw_cfi_read_fn(void *context, uintptr_t address, uint64_t *value);

/*
 * One step of the full evaluator: *regs (DWARF numbering, [16] is the pc) become the caller's.
 * False at the outermost frame or where the rules cannot be followed. *is_exact is what the pc
 * was on entry (return address or interrupted) and becomes that of the result.
 */
bool lw_cfi_step(uint64_t regs[LW_NR_REGS], bool *is_exact, lw_cfi_read_fn *read, void *context);

#endif
