/* SPDX-License-Identifier: MIT */
/*
 * frames.h - functions with every kind of frame that unwind information can describe.
 *
 * Each calls the function it is given and returns. Most are assembly, so that the frame and what is
 * said of it are known; what compilers and the system make themselves (a stack that is realigned, a
 * signal's frame, a coroutine's first frame) is made by them. Where registers are clobbered, it is so that a
 * wrong rule is noticed further out.
 */
#ifndef LW_TEST_FRAMES_H
#define LW_TEST_FRAMES_H

#include <alloca.h>
#include <signal.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "preload/unwind/cfi.h"

typedef void frames_inner_fn(void);
typedef void frames_fn(frames_inner_fn *inner);

/* A function whose body is text; it starts with the stack pointer 8 bytes below a multiple of 16. */
#define FRAMES_ASM(name, body)                                                                     \
	frames_fn name;                                                                            \
	__asm__(".text\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" body             \
		"ret\n.cfi_endproc\n.size " #name ", .-" #name "\n")

FRAMES_ASM(frame_sp, "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
		     "call *%rdi\n"
		     "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n");

FRAMES_ASM(frame_fp, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
		     "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
		     "sub $112, %rsp\n"
		     "call *%rdi\n"
		     "leave\n.cfi_def_cfa rsp, 8\n");

/* The frame pointer used for something else, saved in the middle of the frame. */
FRAMES_ASM(frame_other_fp, "sub $56, %rsp\n.cfi_adjust_cfa_offset 56\n"
			   "mov %rbp, 32(%rsp)\n.cfi_rel_offset rbp, 32\n"
			   "mov $0x5a5a5a5a, %ebp\n"
			   "call *%rdi\n"
			   "mov 32(%rsp), %rbp\n.cfi_restore rbp\n"
			   "add $56, %rsp\n.cfi_adjust_cfa_offset -56\n");

/* Further than a packed rule reaches. */
FRAMES_ASM(frame_huge, "sub $204808, %rsp\n.cfi_adjust_cfa_offset 204808\n"
		       "mov %rbp, 8(%rsp)\n.cfi_rel_offset rbp, 8\n"
		       "xor %ebp, %ebp\n"
		       "call *%rdi\n"
		       "mov 8(%rsp), %rbp\n.cfi_restore rbp\n"
		       "add $204808, %rsp\n.cfi_adjust_cfa_offset -204808\n");

/* Packed, but further than a remembered position reaches. */
FRAMES_ASM(frame_far, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
		      "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
		      "sub $600000, %rsp\n"
		      "call *%rdi\n"
		      "leave\n.cfi_def_cfa rsp, 8\n");

/* DW_CFA_def_cfa_expression: DW_OP_breg7 (rsp) 48 */
FRAMES_ASM(frame_cfa_expression, "sub $40, %rsp\n.cfi_escape 0x0f, 2, 0x77, 48\n"
				 "call *%rdi\n"
				 "add $40, %rsp\n.cfi_def_cfa rsp, 8\n");

/*
 * The same with detours: rsp << 1 >> 1 | 0, plus 168, minus 128, plus 8 from the other side; then dup,
 * drop, over, not, neg and nop, each undone.
 */
FRAMES_ASM(frame_long_expression, "sub $40, %rsp\n"
				  ".cfi_escape 0x0f, 29, 0x77, 0, 0x31, 0x24, 0x31, 0x25, 0x30, 0x21, "
				  "0x08, 0xa8, 0x22, 0x0a, 0x80, 0x00, 0x1c, 0x38, 0x16, 0x22, 0x12, 0x13, "
				  "0x30, 0x14, 0x13, 0x13, 0x20, 0x20, 0x1f, 0x1f, 0x96\n"
				  "call *%rdi\n"
				  "add $40, %rsp\n.cfi_def_cfa rsp, 8\n");

/* rbp saved where DW_CFA_expression (CFA on the stack; DW_OP_lit16, DW_OP_minus) says. */
FRAMES_ASM(frame_saved_by_expression, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_escape 0x10, 6, 2, 0x40, 0x1c\n"
				      "mov $0x5a5a5a5a, %ebp\n"
				      "call *%rdi\n"
				      "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n");

/* An outer frame pointer that is known from the inner CFA: DW_CFA_val_offset_sf -2 * -8. */
FRAMES_ASM(frame_val_offset_inner, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_escape 0x15, 6, 0x7e\n"
				   "mov $0x5a5a5a5a, %ebp\n"
				   "call *%rdi\n"
				   "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n");
FRAMES_ASM(frame_val_offset, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
			     "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
			     "sub $16, %rsp\n"
			     "call frame_val_offset_inner\n"
			     "leave\n.cfi_def_cfa rsp, 8\n");
/* DW_CFA_val_expression: CFA + 16 */
FRAMES_ASM(frame_val_expression_inner, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_escape 0x16, 6, 2, 0x40, 0x22\n"
				       "mov $0x5a5a5a5a, %ebp\n"
				       "call *%rdi\n"
				       "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n");
FRAMES_ASM(frame_val_expression, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
				 "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\n"
				 "sub $16, %rsp\n"
				 "call frame_val_expression_inner\n"
				 "leave\n.cfi_def_cfa rsp, 8\n");

/* rbp kept in rbx, which whoever is called saves. */
FRAMES_ASM(frame_in_register, "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset rbx, -16\n"
			      "mov %rbp, %rbx\n.cfi_register rbp, rbx\n"
			      "mov $0x5a5a5a5a, %ebp\n"
			      "call *%rdi\n"
			      "mov %rbx, %rbp\n.cfi_restore rbp\n"
			      "pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore rbx\n");

/* The call lies behind two returns, whose states are remembered within each other. */
FRAMES_ASM(frame_remembered, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
			     "sub $32, %rsp\n.cfi_def_cfa_offset 48\n"
			     "test %rdi, %rdi\n"
			     "jnz 2f\n"
			     ".cfi_remember_state\n"
			     "add $16, %rsp\n.cfi_def_cfa_offset 32\n"
			     "cmp $1, %rdi\n"
			     "je 1f\n"
			     ".cfi_remember_state\n"
			     "add $16, %rsp\n.cfi_def_cfa_offset 16\n"
			     "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n"
			     "ret\n"
			     "1:\n.cfi_restore_state\n"
			     "add $16, %rsp\n.cfi_def_cfa_offset 16\n"
			     "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n"
			     "ret\n"
			     "2:\n.cfi_restore_state\n"
			     "mov $0x5a5a5a5a, %ebp\n"
			     "call *%rdi\n"
			     "add $32, %rsp\n.cfi_def_cfa_offset 16\n"
			     "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n");

/* Rows far apart: DW_CFA_advance_loc1, 2 and 4. */
FRAMES_ASM(frame_long_code, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
			    "jmp 1f\n.skip 200, 0x90\n"
			    "1: push %rbx\n.cfi_def_cfa_offset 24\n.cfi_offset rbx, -24\n"
			    "jmp 2f\n.skip 3000, 0x90\n"
			    "2: push %r12\n.cfi_def_cfa_offset 32\n.cfi_offset r12, -32\n"
			    "jmp 3f\n.skip 70000, 0x90\n"
			    "3: sub $8, %rsp\n.cfi_def_cfa_offset 40\n"
			    "mov $0x5a5a5a5a, %ebp\n"
			    "sub $8, %rsp\n.cfi_def_cfa_offset 48\n"
			    "call *%rdi\n"
			    "add $16, %rsp\n.cfi_def_cfa_offset 32\n"
			    "pop %r12\n.cfi_def_cfa_offset 24\n.cfi_restore r12\n"
			    "pop %rbx\n.cfi_def_cfa_offset 16\n.cfi_restore rbx\n"
			    "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n");

/* The outermost frame, by its own word. */
FRAMES_ASM(frame_outermost, "sub $8, %rsp\n.cfi_def_cfa_offset 16\n.cfi_undefined rip\n"
			    "call *%rdi\n"
			    "add $8, %rsp\n.cfi_def_cfa_offset 8\n");

/* What a fault interrupts: at a function's first instruction, and in the middle of one. */
void frames_fault_first(void);
__asm__(".text\n.type frames_fault_first, @function\n"
	"nop\n"
	"frames_fault_first:\n.cfi_startproc\n"
	"ud2\n"
	"ret\n.cfi_endproc\n.size frames_fault_first, .-frames_fault_first\n");
void frames_fault_middle(void);
__asm__(".text\n.type frames_fault_middle, @function\n"
	"frames_fault_middle:\n.cfi_startproc\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n"
	"mov $0x5a5a5a5a, %ebp\n"
	"push %rbx\n.cfi_def_cfa_offset 24\n"
	"ud2\n"
	"pop %rbx\n.cfi_def_cfa_offset 16\n"
	"pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore rbp\n"
	"ret\n.cfi_endproc\n.size frames_fault_middle, .-frames_fault_middle\n");

/* A stack realigned by the compiler, in a function that also needs a frame pointer. */
__attribute__((noinline)) static void frame_realigned(frames_inner_fn *inner)
{
	alignas(64) volatile char aligned[64];
	volatile char *more = alloca((size_t)(((uintptr_t)inner & 15) + 100));

	aligned[0] = more[0] = 1;
	inner();
	more[1] = aligned[0];
}

__attribute__((noinline)) static void frame_aligned(frames_inner_fn *inner)
{
	alignas(128) volatile char aligned[256];

	aligned[0] = 1;
	inner();
	aligned[1] = aligned[0];
}

__attribute__((noinline)) static void frame_compiled(frames_inner_fn *inner)
{
	volatile char local[40];

	local[0] = 1;
	inner();
	local[1] = local[0];
}

/* ---- signals ---- */

static frames_inner_fn *frames_in_handler;
static uintptr_t frames_trampoline; /* where handlers return to */

static void frames_on_signal(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	frames_inner_fn *inner = frames_in_handler;

	(void)info;
	frames_trampoline = (uintptr_t)__builtin_return_address(0);
	inner();
	if (number == SIGILL)
		interrupted->uc_mcontext.gregs[REG_RIP] += 2;
}

__attribute__((noinline)) static void frames_with_handler(frames_inner_fn *inner, int flags, void (*act)(void))
{
	struct sigaction action = { .sa_sigaction = frames_on_signal,
		.sa_flags = SA_SIGINFO | SA_NODEFER | flags };

	(void)sigaction(SIGILL, &action, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	frames_in_handler = inner;
	act();
}

static void frames_raise(void)
{
	(void)raise(SIGUSR1);
}

static void frame_raised(frames_inner_fn *inner)
{
	frames_with_handler(inner, 0, frames_raise);
}

static void frame_fault_first(frames_inner_fn *inner)
{
	frames_with_handler(inner, 0, frames_fault_first);
}

static void frame_fault_middle(frames_inner_fn *inner)
{
	frames_with_handler(inner, 0, frames_fault_middle);
}

static void frame_other_stack(frames_inner_fn *inner)
{
	frames_with_handler(inner, SA_ONSTACK, frames_fault_middle);
}

/* ---- other stacks ---- */

enum { FRAMES_STACK_BYTES = 8 << 20 };

static void *frames_new_stack(void)
{
	void *stack = mmap(NULL, FRAMES_STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED)
		abort();
	return stack;
}

static void frames_start(void)
{
	stack_t stack = { .ss_sp = frames_new_stack(), .ss_size = FRAMES_STACK_BYTES };

	(void)sigaltstack(&stack, NULL);
}

static void frame_coroutine(frames_inner_fn *inner)
{
	void *stack = frames_new_stack();
	ucontext_t back, there;

	(void)getcontext(&there);
	there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = FRAMES_STACK_BYTES };
	there.uc_link = &back;
	makecontext(&there, inner, 0);
	(void)swapcontext(&back, &there);
	(void)munmap(stack, FRAMES_STACK_BYTES);
}

/* ---- all of them ---- */

enum { FRAMES_ANY_RULE = -1 };

static const struct frames_kind {
	const char *name;
	frames_fn *call;
	int rule;	     /* the packed rule of its return address, where that is known */
	bool is_not_remembered;
	bool is_beyond_libunwind; /* 1.6 goes wrong after DW_CFA_val_offset and DW_CFA_register, and ends a coroutine late */
	unsigned most;	     /* in one stack */
} frames_kinds[] = {
	{ "rsp-based", frame_sp, LW_RULE_SP, false, false, 99 },
	{ "rbp-based", frame_fp, LW_RULE_FP, false, false, 99 },
	{ "rbp as an ordinary register", frame_other_fp, LW_RULE_SP, false, false, 99 },
	{ "200 KB", frame_huge, LW_RULE_SLOW, true, false, 2 },
	{ "600 KB by rbp", frame_far, LW_RULE_FP, true, false, 2 },
	{ "CFA by an expression", frame_cfa_expression, LW_RULE_SLOW, true, false, 9 },
	{ "CFA by a long expression", frame_long_expression, LW_RULE_SLOW, true, false, 9 },
	{ "rbp saved by an expression", frame_saved_by_expression, LW_RULE_SLOW, true, false, 9 },
	{ "rbp below the CFA", frame_val_offset, LW_RULE_SLOW, true, true, 9 },
	{ "rbp by an expression", frame_val_expression, LW_RULE_SLOW, true, false, 9 },
	{ "rbp in another register", frame_in_register, LW_RULE_SLOW, true, true, 9 },
	{ "remembered states", frame_remembered, LW_RULE_SP, false, false, 9 },
	{ "long code", frame_long_code, LW_RULE_SP, false, false, 9 },
	{ "outermost", frame_outermost, LW_RULE_END, false, false, 1 },
#ifdef __clang__
	{ "realigned, with alloca", frame_realigned, FRAMES_ANY_RULE, false, false, 9 },
#else
	{ "realigned, with alloca", frame_realigned, LW_RULE_FP_DEREF, false, false, 9 },
#endif
	{ "aligned to 128", frame_aligned, FRAMES_ANY_RULE, false, false, 9 },
	{ "compiled", frame_compiled, FRAMES_ANY_RULE, false, false, 9 },
	{ "raised signal", frame_raised, FRAMES_ANY_RULE, true, false, 2 },
	{ "fault at a first instruction", frame_fault_first, FRAMES_ANY_RULE, true, false, 2 },
	{ "fault in the middle", frame_fault_middle, FRAMES_ANY_RULE, true, false, 2 },
	{ "signal on another stack", frame_other_stack, FRAMES_ANY_RULE, true, false, 1 },
	{ "coroutine", frame_coroutine, FRAMES_ANY_RULE, false, true, 1 },
};

#endif
