/* SPDX-License-Identifier: MIT */
/*
 * cfi_x86_64.c - what is the machine's in unwinding: packing a row into 32 bits, the kernel's signal
 * frame, and the full evaluator that steps all callee-saved registers.
 *
 * The full evaluator is for what packed rules cannot say: CFA from another register (a function
 * that realigns its stack, before it has saved the old pointer), DWARF expressions of hand-written
 * assembly, frames larger than 128 KiB. It costs about a microsecond per frame and is used for a
 * whole stack at a time; the packed walk serves all others.
 */
#include "preload/unwind/cfi.h"

#include <stddef.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/ucontext.h>

enum { MAX_EXPRESSION_STACK = 16 };

/* DW_OP_* that compilers and assembler authors use in call frame information */
enum {
	OP_ADDR = 0x03, OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S = 0x09, OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b, OP_CONST4U = 0x0c, OP_CONST4S = 0x0d, OP_CONST8U = 0x0e, OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10, OP_CONSTS = 0x11, OP_DUP = 0x12, OP_DROP = 0x13, OP_OVER = 0x14, OP_SWAP = 0x16,
	OP_AND = 0x1a, OP_MINUS = 0x1c, OP_MUL = 0x1e, OP_NEG = 0x1f, OP_NOT = 0x20, OP_OR = 0x21,
	OP_PLUS = 0x22, OP_PLUS_UCONST = 0x23, OP_SHL = 0x24, OP_SHR = 0x25, OP_XOR = 0x27, OP_EQ = 0x29,
	OP_GE = 0x2a, OP_GT = 0x2b, OP_LE = 0x2c, OP_LT = 0x2d, OP_NE = 0x2e, OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f, OP_BREG0 = 0x70, OP_BREG31 = 0x8f, OP_NOP = 0x96,
};

static uint32_t make_rule(enum lw_rule_type type, int64_t cfa_bytes, int64_t fp_bytes)
{
	const int64_t max_cfa = ((1 << LW_RULE_CFA_BITS) - 1) * 8;
	const int64_t max_fp = ((1 << LW_RULE_FP_BITS) - 1) * 8;

	if (cfa_bytes <= 0 || cfa_bytes % 8 || cfa_bytes > max_cfa)
		return LW_RULE_SLOW;
	if (fp_bytes < 0 || fp_bytes % 8 || fp_bytes > max_fp)
		return LW_RULE_SLOW;
	return (uint32_t)type | (uint32_t)(cfa_bytes / 8) << LW_RULE_TYPE_BITS |
	       (uint32_t)(fp_bytes / 8) << (LW_RULE_TYPE_BITS + LW_RULE_CFA_BITS);
}

/* CFA = *(rbp - n), rbp saved at *rbp: what compilers emit for a function that realigns its stack. */
static uint32_t pack_expression(const struct lw_cfi_row *row)
{
	const uint8_t *e = row->cfa_expression;
	const struct lw_cfi_rule *fp = &row->regs[LW_REG_FP];
	int64_t n;

	if (row->cfa_offset != 3 || e[0] != OP_BREG0 + LW_REG_FP || e[1] & 0x80 || e[2] != OP_DEREF)
		return LW_RULE_SLOW;
	n = (int64_t)(e[1] & 0x40 ? e[1] - 0x80 : e[1]);
	if (fp->kind != LW_CFI_EXPRESSION || fp->value != 2 || fp->expression[0] != OP_BREG0 + LW_REG_FP ||
			fp->expression[1] != 0)
		return LW_RULE_SLOW;
	return make_rule(LW_RULE_FP_DEREF, -n, 0);
}

/* mov $15, %rax; syscall: the trampoline the kernel returns through, in libc or the vdso. */
static bool is_signal_return(uintptr_t pc)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };

	return !memcmp((const void *)pc, code, sizeof(code));
}

uint32_t lw_cfi_pack(uintptr_t pc, bool is_exact)
{
	struct lw_cfi_row row;
	const struct lw_cfi_rule *fp = &row.regs[LW_REG_FP], *pc_rule = &row.regs[LW_REG_PC];
	int64_t fp_bytes;

	if (!lw_cfi_find(is_exact ? pc : pc - 1, &row)) {
		/* the trampoline's FDE begins one byte early for just this look-up; older ones lack it */
		return lw_cfi_find(pc, &row) && row.is_signal_frame && is_signal_return(pc)
				? LW_RULE_SIGNAL : LW_RULE_END;
	}
	if (row.is_signal_frame)
		return is_signal_return(pc) ? LW_RULE_SIGNAL : LW_RULE_SLOW;
	if (row.return_register != LW_REG_PC || pc_rule->kind == LW_CFI_UNDEFINED)
		return LW_RULE_END;
	if (pc_rule->kind != LW_CFI_OFFSET || pc_rule->value != -8)
		return LW_RULE_SLOW;
	if (row.regs[LW_REG_SP].kind != LW_CFI_SAME)
		return LW_RULE_SLOW;
	if (row.cfa_is_expression)
		return pack_expression(&row);
	if (fp->kind == LW_CFI_OFFSET)
		fp_bytes = -fp->value;
	else if (fp->kind == LW_CFI_SAME)
		fp_bytes = 0;
	else
		return LW_RULE_SLOW;
	if (row.cfa_register == LW_REG_SP)
		return make_rule(LW_RULE_SP, row.cfa_offset, fp_bytes);
	if (row.cfa_register == LW_REG_FP)
		return make_rule(LW_RULE_FP, row.cfa_offset, fp_bytes);
	return LW_RULE_SLOW;
}

struct lw_cfi_signal_slots lw_cfi_signal_slots(uintptr_t sp)
{
	uintptr_t gregs = sp + offsetof(ucontext_t, uc_mcontext.gregs);

	return (struct lw_cfi_signal_slots){
		.pc = gregs + REG_RIP * sizeof(greg_t),
		.sp = gregs + REG_RSP * sizeof(greg_t),
		.fp = gregs + REG_RBP * sizeof(greg_t),
	};
}

struct evaluation {
	uint64_t stack[MAX_EXPRESSION_STACK];
	unsigned nr;
	const uint8_t *at, *end;
	const uint64_t *regs;
	lw_cfi_read_fn *read;
	void *context;
	bool is_bad;
};

static void push(struct evaluation *e, uint64_t value)
{
	if (e->nr == MAX_EXPRESSION_STACK)
		e->is_bad = true;
	else
		e->stack[e->nr++] = value;
}

static uint64_t pop(struct evaluation *e)
{
	if (!e->nr) {
		e->is_bad = true;
		return 0;
	}
	return e->stack[--e->nr];
}

static uint64_t operand(struct evaluation *e, unsigned bytes, bool is_signed)
{
	uint64_t value = 0;

	if ((size_t)(e->end - e->at) < bytes) {
		e->is_bad = true;
		return 0;
	}
	memcpy(&value, e->at, bytes);
	e->at += bytes;
	if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~UINT64_C(0) << (8 * bytes);
	return value;
}

static uint64_t leb(struct evaluation *e, bool is_signed)
{
	uint64_t value = 0;

	for (unsigned shift = 0;;) {
		uint8_t byte = (uint8_t)operand(e, 1, false);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80 && !e->is_bad)
			continue;
		if (is_signed && shift < 64 && byte & 0x40)
			value |= ~UINT64_C(0) << shift;
		return value;
	}
}

static void run_constant(struct evaluation *e, uint8_t op)
{
	if (op == OP_ADDR)
		push(e, operand(e, 8, false));
	else if (op <= OP_CONST8S)
		push(e, operand(e, 1u << ((op - OP_CONST1U) / 2), (op - OP_CONST1U) % 2));
	else
		push(e, leb(e, op == OP_CONSTS));
}

static void run_stack(struct evaluation *e, uint8_t op)
{
	uint64_t top = pop(e), below;

	switch (op) {
	case OP_DUP:
		push(e, top);
		push(e, top);
		break;
	case OP_DROP:
		break;
	case OP_NEG:
		push(e, -top);
		break;
	case OP_NOT:
		push(e, ~top);
		break;
	case OP_PLUS_UCONST:
		push(e, top + leb(e, false));
		break;
	case OP_DEREF:
		below = 0;
		if (e->is_bad || !e->read(e->context, top, &below))
			e->is_bad = true;
		push(e, below);
		break;
	case OP_OVER:
		below = pop(e);
		push(e, below);
		push(e, top);
		push(e, below);
		break;
	case OP_SWAP:
		below = pop(e);
		push(e, top);
		push(e, below);
		break;
	default:
		e->is_bad = true;
	}
}

static void run_binary(struct evaluation *e, uint8_t op)
{
	uint64_t b = pop(e), a = pop(e);

	switch (op) {
	case OP_AND:
		push(e, a & b);
		break;
	case OP_OR:
		push(e, a | b);
		break;
	case OP_XOR:
		push(e, a ^ b);
		break;
	case OP_PLUS:
		push(e, a + b);
		break;
	case OP_MINUS:
		push(e, a - b);
		break;
	case OP_MUL:
		push(e, a * b);
		break;
	case OP_SHL:
		push(e, b < 64 ? a << b : 0);
		break;
	case OP_SHR:
		push(e, b < 64 ? a >> b : 0);
		break;
	case OP_EQ:
		push(e, a == b);
		break;
	case OP_GE:
		push(e, (int64_t)a >= (int64_t)b);
		break;
	case OP_GT:
		push(e, (int64_t)a > (int64_t)b);
		break;
	case OP_LE:
		push(e, (int64_t)a <= (int64_t)b);
		break;
	case OP_LT:
		push(e, (int64_t)a < (int64_t)b);
		break;
	case OP_NE:
		push(e, a != b);
		break;
	default:
		e->is_bad = true;
	}
}

static bool evaluate(struct evaluation *e, const uint8_t *expression, int64_t bytes, uint64_t *value)
{
	e->at = expression;
	e->end = expression + bytes;
	e->is_bad = false;
	while (e->at < e->end && !e->is_bad) {
		uint8_t op = (uint8_t)operand(e, 1, false);

		if (op >= OP_LIT0 && op <= OP_LIT31)
			push(e, (uint64_t)(op - OP_LIT0));
		else if (op >= OP_BREG0 && op < OP_BREG0 + LW_NR_REGS)
			push(e, e->regs[op - OP_BREG0] + leb(e, true));
		else if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONSTS))
			run_constant(e, op);
		else if (op == OP_DEREF || (op >= OP_DUP && op <= OP_SWAP) || op == OP_NEG || op == OP_NOT ||
				op == OP_PLUS_UCONST)
			run_stack(e, op);
		else if (op != OP_NOP)
			run_binary(e, op);
	}
	*value = pop(e);
	return !e->is_bad;
}

static bool find_cfa(const struct lw_cfi_row *row, struct evaluation *e, uint64_t *cfa)
{
	e->nr = 0;
	if (row->cfa_is_expression)
		return evaluate(e, row->cfa_expression, row->cfa_offset, cfa);
	if (row->cfa_register >= LW_NR_REGS)
		return false;
	*cfa = e->regs[row->cfa_register] + (uint64_t)row->cfa_offset;
	return true;
}

/* The caller's value of one register; false: cannot be known. */
static bool restore(const struct lw_cfi_rule *rule, struct evaluation *e, uint64_t cfa, unsigned reg,
		uint64_t *value)
{
	uint64_t address;

	switch (rule->kind) {
	case LW_CFI_SAME:
		*value = reg == LW_REG_SP ? cfa : e->regs[reg];
		return true;
	case LW_CFI_OFFSET:
		return e->read(e->context, cfa + (uint64_t)rule->value, value);
	case LW_CFI_VAL_OFFSET:
		*value = cfa + (uint64_t)rule->value;
		return true;
	case LW_CFI_REGISTER:
		if (rule->value < 0 || rule->value >= LW_NR_REGS)
			return false;
		*value = e->regs[rule->value];
		return true;
	case LW_CFI_EXPRESSION:
		e->nr = 0;
		push(e, cfa);
		return evaluate(e, rule->expression, rule->value, &address) &&
		       e->read(e->context, address, value);
	case LW_CFI_VAL_EXPRESSION:
		e->nr = 0;
		push(e, cfa);
		return evaluate(e, rule->expression, rule->value, value);
	default:
		return false;
	}
}

bool lw_cfi_step(uint64_t regs[LW_NR_REGS], bool *is_exact, lw_cfi_read_fn *read, void *context)
{
	struct evaluation e = { .regs = regs, .read = read, .context = context };
	uint64_t before[LW_NR_REGS], cfa;
	struct lw_cfi_row row;
	uintptr_t pc = regs[LW_REG_PC];

	/* as in lw_cfi_pack(): what only begins at a return address did not make the call */
	if (!lw_cfi_find(*is_exact ? pc : pc - 1, &row) && (!lw_cfi_find(pc, &row) || !row.is_signal_frame))
		return false;
	if (row.return_register != LW_REG_PC || row.regs[LW_REG_PC].kind == LW_CFI_UNDEFINED ||
			row.regs[LW_REG_PC].kind == LW_CFI_SAME)
		return false;
	if (!find_cfa(&row, &e, &cfa))
		return false;
	memcpy(before, regs, sizeof(before));
	e.regs = before;
	for (unsigned reg = 0; reg < LW_NR_REGS; reg++) {
		uint64_t value = 0;

		if (!restore(&row.regs[reg], &e, cfa, reg, &value) && reg == LW_REG_PC)
			return false;
		regs[reg] = value;
	}
	*is_exact = row.is_signal_frame;
	return regs[LW_REG_PC] != 0;
}

/* ---- what the code around a return address does ---- */

/* Bytes of one instruction that belongs to a function's last steps; 0: something else. */
static unsigned leaving_bytes(const uint8_t *code)
{
	if (code[0] == 0x90 || code[0] == 0xc9 || (code[0] & 0xf8) == 0x58) /* nop, leave, pop */
		return 1;
	if (code[0] == 0x41 && (code[1] & 0xf8) == 0x58) /* pop %r8.. */
		return 2;
	if (code[0] != 0x48)
		return 0;
	if (code[1] == 0x83 && code[2] == 0xc4) /* add $byte, %rsp */
		return 4;
	if (code[1] == 0x81 && code[2] == 0xc4) /* add $long, %rsp */
		return 7;
	if ((code[1] == 0x8b || code[1] == 0x8d) && (code[2] & 0xc7) == 0x45) /* mov or lea off(%rbp), register */
		return 4;
	return 0;
}

bool lw_code_ends_after(uintptr_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;

	for (unsigned i = 0; i < 16; i++) {
		unsigned bytes = leaving_bytes(code);

		if (code[0] == 0xc3 || (code[0] == 0xf3 && code[1] == 0xc3))
			return true;
		if (!bytes)
			return false;
		code += bytes;
	}
	return false;
}

bool lw_code_calls_indirectly(uintptr_t pc)
{
	const uint8_t *end = (const uint8_t *)pc;

	if (end[-5] == 0xe8)
		return false;
	if (end[-2] == 0xff && ((end[-1] & 0xf8) == 0xd0 || (end[-1] & 0xf8) == 0x10)) /* *%reg, *(%reg) */
		return true;
	if (end[-3] == 0xff && (end[-2] & 0xf8) == 0x50) /* *byte(%reg) */
		return true;
	return end[-6] == 0xff && (end[-5] & 0xf8) == 0x90; /* *long(%reg) */
}

/* An address as four bytes of an instruction give it, relative to the instruction's end. */
static uintptr_t relative(const uint8_t *offset_at)
{
	int32_t offset;

	memcpy(&offset, offset_at, sizeof(offset));
	return (uintptr_t)(offset_at + sizeof(offset)) + (uintptr_t)(intptr_t)offset;
}

/* The word in a module's table of addresses; 0 if there is no module. */
static uintptr_t read_slot(uintptr_t slot)
{
	struct dl_find_object module;

	return slot & 7 || _dl_find_object((void *)slot, &module) ? 0 : *(const uintptr_t *)slot;
}

uintptr_t lw_code_call_target(uintptr_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;
	struct dl_find_object module;
	uintptr_t target;

	if (code[-6] == 0xff && code[-5] == 0x15) /* call *slot(%rip) */
		return read_slot(relative(code - 4));
	if (code[-5] != 0xe8)
		return 0;
	target = relative(code - 4);
	if (_dl_find_object((void *)target, &module))
		return 0; /* what looked like a call was the end of something else */
	code = (const uint8_t *)target;
	if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) /* endbr64 */
		code += 4;
	if (code[0] == 0xf2) /* bnd */
		code++;
	return code[0] == 0xff && code[1] == 0x25 ? read_slot(relative(code + 2)) : target;
}
