/* SPDX-License-Identifier: MIT */
/* unwind.c - the walk by packed rules and the full evaluator behind it; see unwind.h. */
#include "preload/unwind/unwind.h"

#include <string.h>

#include "preload/base/hot.h"
#include "preload/unwind/rules.h"
#include "preload/unwind/stack.h"
#include "preload/unwind/trail.h"

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
	if (!read_word(walk, at.pc, &pc) || !read_word(walk, at.sp, &sp) || !read_word(walk, at.fp, &fp) ||
			sp & 7)
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

/* A walk in registers: what changes from frame to frame. */
struct stride {
	uintptr_t sp, pc;
	struct fp fp;
	uint32_t nr;
};

/* Where the last of these steps that saved the frame pointer did so. */
LW_INLINE struct fp saved_fp(const struct lw_trail_step *step, const struct lw_trail_step *first, uintptr_t sp,
		struct fp before)
{
	while (step-- > first) {
		if (step->fp)
			return (struct fp){ 0, sp - 8 * (uintptr_t)step->fp };
		sp -= 8 * (uintptr_t)step->cfa;
	}
	return before;
}

/*
 * As long as the frames are the last walk's: the rule is at hand, and needs the stack pointer alone.
 * Leaves at the first other frame, at the outermost, and before the last one that is wanted.
 */
LW_INLINE struct stride follow_trail(struct stride at, struct lw_trail_walk *trail, uintptr_t base,
		uintptr_t end, uint32_t max_frames, struct lw_stack *stack)
{
	const uint64_t *words = (const uint64_t *)base;
	const size_t top = (end - base) / 8;
	struct lw_trail_step *old = trail->at, *first = old;
	size_t slot = (at.sp - base) / 8;
	uintptr_t pc = at.pc;
	uint32_t nr = at.nr;

	while (old->pc == pc && nr + 1 < max_frames) {
		size_t next = slot + old->cfa;

		if (LW_UNLIKELY((size_t)old->cfa - 1 >= top - slot)) /* outside of the stack, or no step to follow */
			break;
		old->sp = (uint32_t)base + 8 * (uint32_t)slot;
		old++;
		stack->pcs[nr++] = pc;
		stack->slots[nr] = (uint16_t)(next - 1);
		slot = next;
		pc = words[next - 1];
	}
	trail->at = trail->from = old;
	at.sp = base + 8 * slot;
	return (struct stride){ at.sp, pc, saved_fp(old, first, at.sp, at.fp), nr };
}

/* One frame by its rule, the stack pointer alone being needed as nearly always. False: not so. */
LW_INLINE bool stride(struct stride *at, uint32_t rule, uintptr_t base, uintptr_t end, struct lw_stack *stack)
{
	uintptr_t cfa = at->sp + (uintptr_t)lw_rule_cfa(rule) * 8;

	if (LW_UNLIKELY(!lw_trail_can_follow(rule) || at->sp & 7 || cfa > end))
		return false;
	if (lw_rule_fp(rule))
		at->fp = (struct fp){ 0, cfa - 8 * (uintptr_t)lw_rule_fp(rule) };
	stack->slots[at->nr] = (uint16_t)((cfa - 8 - base) / 8);
	at->sp = cfa;
	at->pc = *(const uintptr_t *)(cfa - 8);
	return true;
}

static LW_NOINLINE bool stride_slowly(struct stride *at, uint32_t rule, struct lw_thread *thread,
		uintptr_t base, struct lw_stack *stack, bool *is_exact)
{
	struct walk walk = { thread, stack, base, at->sp, at->pc, at->fp, *is_exact };

	stack->nr = at->nr;
	if (!step(&walk, rule))
		return false;
	at->sp = walk.sp;
	at->pc = walk.pc;
	at->fp = walk.fp;
	*is_exact = walk.is_exact;
	return true;
}

/* Is this the frame the last walk met here, with a rule that leads on by itself or ends the stack? */
LW_INLINE bool is_known(const struct lw_trail_step *step, uintptr_t pc)
{
	return step->pc == pc || step->pc == ~pc;
}

/*
 * The walk proper. A return address of 0 ends it, as if it had not been read. False: a rule says
 * LW_RULE_SLOW.
 */
static bool walk_quickly(struct lw_thread *thread, const struct lw_frame *frame, uint32_t max_frames,
		struct lw_stack *stack, uint32_t generation, bool is_sure)
{
	struct lw_trail_walk trail = lw_trail_begin(thread->trail, generation);
	struct stride at = { .sp = frame->sp, .pc = frame->pc, .fp = { frame->fp, 0 } };
	uintptr_t base = frame->sp, end = thread->stack_hi;
	bool is_exact = false;
	uint32_t rule;

	for (;;) {
		lw_trail_seek(&trail, at.sp);
		if (LW_LIKELY(is_known(trail.at, at.pc) && !is_exact && !(at.sp & 7) && at.sp >= base)) {
			if (trail.nr_fresh || trail.at != trail.from)
				lw_trail_splice(thread->trail, &trail);
			at = follow_trail(at, &trail, base, end, max_frames, stack);
			if (LW_LIKELY(trail.at->pc == ~at.pc && !(at.pc >> 47))) {
				stack->pcs[at.nr++] = at.pc;
				break;
			}
		}
		if (LW_UNLIKELY(!at.pc)) {
			stack->is_repeatable = false; /* ended by what memory held, not by a rule */
			break;
		}
		rule = LW_UNLIKELY(is_exact) ? lw_cfi_pack(at.pc, true) : lw_rules_find(at.pc);
		if (LW_UNLIKELY(lw_rule_type(rule) == LW_RULE_SLOW)) {
			lw_trail_end(thread->trail, &trail, at.sp, false);
			return false;
		}
		stack->pcs[at.nr] = at.pc + is_exact;
		thread->trail->fresh[trail.nr_fresh++] =
				lw_trail_step(at.pc, at.sp, LW_UNLIKELY(is_exact) ? LW_RULE_NONE : rule);
		if (++at.nr == max_frames) {
			/* the next rule tells whether anything was cut off, without reading memory */
			stack->is_truncated = lw_rule_type(rule) != LW_RULE_END;
			break;
		}
		if (LW_LIKELY(!is_exact && stride(&at, rule, base, end, stack)))
			continue;
		if (lw_rule_type(rule) == LW_RULE_END || !stride_slowly(&at, rule, thread, base, stack, &is_exact))
			break;
		end = thread->stack_hi; /* it may have been found to reach further */
	}
	stack->nr = at.nr;
	if (LW_UNLIKELY((at.sp - base) / 8 > UINT16_MAX))
		stack->is_repeatable = false;
	lw_trail_end(thread->trail, &trail, at.sp, is_sure && !lw_load(&lw_hot.unloading));
	return true;
}

void lw_unwind_walk(struct lw_thread *thread, const struct lw_frame *frame, uint32_t max_frames,
		struct lw_stack *stack)
{
	/* while code is being unmapped a rule may be true now and false in a moment: not kept */
	bool is_sure = !lw_load_acquire(&lw_hot.unloading);
	uint32_t generation = lw_load_acquire(&lw_hot.generation);

	stack->nr = 0;
	stack->nr_links = 0;
	stack->is_truncated = false;
	stack->is_repeatable = true;
	stack->is_slow = false;
	if (LW_UNLIKELY(frame->sp < thread->stack_lo || frame->sp >= thread->stack_hi))
		lw_stack_enter(thread, frame->sp);
	if (!walk_quickly(thread, frame, max_frames, stack, generation, is_sure)) {
		struct walk walk = { thread, stack, frame->sp, frame->sp, frame->pc, { frame->fp, 0 }, false };

		walk_slowly(&walk, frame, max_frames);
	}
}
