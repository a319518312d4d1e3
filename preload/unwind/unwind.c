/* SPDX-License-Identifier: MIT */
/* unwind.c - the walk by packed rules and the full evaluator behind it; see unwind.h. */
#include "preload/unwind/unwind.h"

#include <string.h>

#include "preload/unwind/rules.h"
#include "preload/unwind/stack.h"

/* The frame pointer during a walk: its value is read only when an outer frame's rule needs it. */
struct fp {
	uintptr_t value;
	uintptr_t slot;	 /* where the value has to be read first; 0: value is known */
};

struct walk {
	struct lw_thread *thread;
	struct lw_stack *stack;
	uintptr_t base;	 /* stack pointer of the first frame: slots count from here */
	uintptr_t sp, pc;
	struct fp fp;
	bool is_exact;	 /* pc was interrupted, not called from */
};

LW_INLINE bool read_word(struct walk *walk, uintptr_t address, uint64_t *value)
{
	if (address & 7 || !lw_stack_holds(walk->thread, address))
		return false;
	*value = *(const uint64_t *)address;
	return true;
}

static bool read_for_evaluator(void *context, uintptr_t address, uint64_t *value)
{
	return read_word(context, address, value);
}

/* Notes that the word at `address` (0: the frame pointer register) had to hold `value`. */
static void note_link(struct walk *walk, uintptr_t address, uintptr_t value)
{
	struct lw_stack *stack = walk->stack;
	uintptr_t slot = address ? (address - walk->base) / 8 : LW_LINK_REGISTER;
	uintptr_t want = (value - walk->base) / 8;

	if (value < walk->base || value & 7 || want > UINT16_MAX || stack->nr_links == LW_MAX_LINKS ||
			(address && (address < walk->base || slot >= LW_LINK_REGISTER))) {
		stack->is_repeatable = false;
		return;
	}
	stack->links[stack->nr_links++] = (struct lw_link){ (uint16_t)slot, (uint16_t)want };
}

/* The frame pointer is needed: read it if that was put off, and note the dependence. */
static bool use_fp(struct walk *walk)
{
	uint64_t value = walk->fp.value;

	if (walk->fp.slot && !read_word(walk, walk->fp.slot, &value))
		return false;
	note_link(walk, walk->fp.slot, value);
	walk->fp = (struct fp){ value, 0 };
	return true;
}

/* The kernel's signal frame: registers are in the ucontext at sp. Not repeatable: too many words. */
static LW_COLD bool step_signal(struct walk *walk)
{
	struct lw_cfi_signal_slots at = lw_cfi_signal_slots(walk->sp);
	uint64_t pc, sp, fp;

	walk->stack->is_repeatable = false;
	if (!read_word(walk, at.pc, &pc) || !read_word(walk, at.sp, &sp) || !read_word(walk, at.fp, &fp))
		return false;
	if ((sp < walk->thread->stack_lo || sp > walk->thread->stack_hi) &&
			!lw_stack_switch(walk->thread, sp)) /* back from a sigaltstack */
		return false;
	*walk = (struct walk){ walk->thread, walk->stack, walk->base, sp, pc, { fp, 0 }, true };
	return true;
}

LW_INLINE bool find_cfa(struct walk *walk, uint32_t rule, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)lw_rule_cfa(rule) * 8;
	uint64_t value;

	if (lw_rule_type(rule) == LW_RULE_SP) {
		*cfa = walk->sp + offset;
		return true;
	}
	if (!use_fp(walk))
		return false;
	if (lw_rule_type(rule) == LW_RULE_FP) {
		*cfa = walk->fp.value + offset;
		return true;
	}
	if (!read_word(walk, walk->fp.value - offset, &value))
		return false;
	note_link(walk, walk->fp.value - offset, value);
	*cfa = value;
	return true;
}

/* One frame outward by a packed rule. False: the stack ends here. */
LW_INLINE bool step(struct walk *walk, uint32_t rule)
{
	struct lw_stack *stack = walk->stack;
	enum lw_rule_type type = lw_rule_type(rule);
	uintptr_t cfa, slot;
	uint64_t pc;

	if (LW_UNLIKELY(type == LW_RULE_SIGNAL))
		return step_signal(walk);
	if (type == LW_RULE_END)
		return false;
	if (!find_cfa(walk, rule, &cfa) || cfa <= walk->sp || !read_word(walk, cfa - 8, &pc) || !pc) {
		stack->is_repeatable = false; /* ended by what memory held, not by a rule */
		return false;
	}
	if (type == LW_RULE_FP_DEREF)
		walk->fp = (struct fp){ 0, walk->fp.value };
	else if (lw_rule_fp(rule))
		walk->fp = (struct fp){ 0, cfa - 8 * (uintptr_t)lw_rule_fp(rule) };
	slot = (cfa - 8 - walk->base) / 8;
	if (LW_UNLIKELY(slot > UINT16_MAX || cfa <= walk->base))
		stack->is_repeatable = false;
	stack->slots[stack->nr] = (uint16_t)slot;
	walk->pc = pc;
	walk->sp = cfa;
	walk->is_exact = false;
	return true;
}

/*
 * The whole stack by the full evaluator. It starts in this very function, with all callee-saved
 * registers, and steps through our own frames until it stands where the hook was called.
 */
static LW_COLD void walk_slowly(struct walk *walk, const struct lw_frame *frame, uint32_t max_frames)
{
	struct lw_stack *stack = walk->stack;
	uint64_t regs[LW_NR_REGS] = { 0 };
	bool is_exact = true;

	lw_registers_read(regs);
	lw_stack_enter(walk->thread, regs[LW_REG_SP]);
	stack->nr = 0;
	stack->is_slow = true;
	stack->is_repeatable = false;
	for (unsigned ours = 0; regs[LW_REG_SP] != frame->sp || regs[LW_REG_PC] != frame->pc; ours++) {
		if (ours == 16 || !lw_cfi_step(regs, &is_exact, read_for_evaluator, walk))
			break;
	}
	if (regs[LW_REG_PC] != frame->pc) { /* our own frames could not be stepped: keep the caller */
		stack->pcs[stack->nr++] = frame->pc;
		return;
	}
	for (;;) {
		uint64_t sp = regs[LW_REG_SP];

		stack->pcs[stack->nr++] = regs[LW_REG_PC] + is_exact;
		if (!lw_cfi_step(regs, &is_exact, read_for_evaluator, walk))
			return;
		if (stack->nr == max_frames) {
			stack->is_truncated = true;
			return;
		}
		if (is_exact ? !lw_stack_switch(walk->thread, regs[LW_REG_SP]) : regs[LW_REG_SP] <= sp)
			return;
	}
}

void lw_unwind_walk(struct lw_thread *thread, const struct lw_frame *frame, uint32_t max_frames,
		struct lw_stack *stack)
{
	struct walk walk = { thread, stack, frame->sp, frame->sp, frame->pc, { frame->fp, 0 }, false };

	stack->nr = 0;
	stack->nr_links = 0;
	stack->is_truncated = false;
	stack->is_repeatable = true;
	stack->is_slow = false;
	if (LW_UNLIKELY(frame->sp < thread->stack_lo || frame->sp >= thread->stack_hi))
		lw_stack_enter(thread, frame->sp);
	for (;;) {
		uint32_t rule = LW_UNLIKELY(walk.is_exact) ? lw_cfi_pack(walk.pc, true)
							   : lw_rules_find(walk.pc);

		if (LW_UNLIKELY(lw_rule_type(rule) == LW_RULE_SLOW)) {
			walk_slowly(&walk, frame, max_frames);
			return;
		}
		stack->pcs[stack->nr++] = walk.pc + walk.is_exact;
		if (stack->nr == max_frames) {
			/* the next rule tells whether anything was cut off, without reading memory */
			stack->is_truncated = lw_rule_type(rule) != LW_RULE_END;
			return;
		}
		if (!step(&walk, rule))
			return;
	}
}
