/* SPDX-License-Identifier: MIT */
/*
 * sys_x86_64.h - the machine's system call instruction, and how it shows registers to an unwinder.
 *
 * With cfi_x86_64.c the only file that names an x86-64 register. Raw calls leave errno alone, work
 * before libc is ready, inside any hook, and in a process that only shares the target's memory.
 * A failure is returned as the kernel gives it: -errno.
 */
#ifndef LW_BASE_SYS_X86_64_H
#define LW_BASE_SYS_X86_64_H

#include <ucontext.h>

#include "preload/base/base.h"

LW_INLINE long lw_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/*
 * clone(2) into run(context) on a stack of its own; run never returns. *tid is set before the child
 * runs, and cleared by the kernel when it is gone, as the flags say. tls: the child's thread pointer.
 */
LW_INLINE long lw_sys_clone(unsigned long flags, void *stack_top, int32_t *tid, void *tls,
		void (*run)(void *), void *context)
{
	register void *r10 __asm__("r10") = tid;
	register void *r8 __asm__("r8") = tls;
	register void (*r9)(void *) __asm__("r9") = run;
	void **stack = (void **)stack_top - 1;
	long ret;

	*stack = context;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "call *%%r9\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(56 /* clone */), "D"(flags), "S"(stack), "d"(tid), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Makes zeroed memory at tp a thread pointer that libc's accesses to thread-locals find sane. */
LW_INLINE void lw_thread_pointer_fill(void *tp)
{
	((void **)tp)[0] = tp;
	((void **)tp)[2] = tp;
}

LW_INLINE uintptr_t lw_stack_pointer(void)
{
	uintptr_t sp;

	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	return sp;
}

LW_INLINE uintptr_t lw_thread_pointer(void)
{
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

/* Callee-saved registers in DWARF numbering, as they are in the function this is inlined into. */
enum { LW_NR_REGS = 17, LW_REG_FP = 6, LW_REG_SP = 7, LW_REG_PC = 16 };

LW_INLINE void lw_registers_read(uint64_t regs[LW_NR_REGS])
{
	__asm__ volatile("mov %%rbx, 24(%0)\n\t"
			 "mov %%rbp, 48(%0)\n\t"
			 "mov %%rsp, 56(%0)\n\t"
			 "mov %%r12, 96(%0)\n\t"
			 "mov %%r13, 104(%0)\n\t"
			 "mov %%r14, 112(%0)\n\t"
			 "mov %%r15, 120(%0)\n\t"
			 "lea 0(%%rip), %%rax\n\t"
			 "mov %%rax, 128(%0)"
			 :
			 : "r"(regs)
			 : "rax", "memory");
}

/* What PTRACE_GETREGS gives (struct user_regs_struct), as words. */
enum { LW_PTRACE_REGS = 27, LW_PTRACE_RESULT = 10, LW_PTRACE_NUMBER = 15, LW_PTRACE_PC = 16, LW_PTRACE_SP = 19 };

/* NT_X86_XSTATE: the vector registers, with PTRACE_GETREGSET. */
enum { LW_PTRACE_ALL_REGS = 0x202 };

/* A leaf function may use so much below the stack pointer. */
enum { LW_RED_ZONE_BYTES = 128 };

/* Makes a stopped thread do the system call again that it is just coming back from. */
LW_INLINE void lw_ptrace_regs_repeat(uint64_t regs[LW_PTRACE_REGS])
{
	regs[LW_PTRACE_RESULT] = regs[LW_PTRACE_NUMBER];
	regs[LW_PTRACE_PC] -= 2; /* the length of `syscall` */
}

/*
 * The same from a signal handler. The number of the call is not kept for a handler, so it is read from the
 * instruction that sets it, where that is the one before `syscall`, as mostly in libc. -1: it cannot be told.
 */
LW_INLINE int64_t lw_context_call(const ucontext_t *context)
{
	const unsigned char *pc = (const unsigned char *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	uint32_t number;

	/* mov $number, %eax; syscall: not where it would begin in another page */
	if (((uintptr_t)pc & 4095) < 7 || pc[-2] != 0x0f || pc[-1] != 0x05 || pc[-7] != 0xb8)
		return -1;
	__builtin_memcpy(&number, pc - 6, sizeof(number));
	return number;
}

LW_INLINE uintptr_t lw_context_pc(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

LW_INLINE int64_t lw_context_result(const ucontext_t *context)
{
	return context->uc_mcontext.gregs[REG_RAX];
}

LW_INLINE void lw_context_repeat(ucontext_t *context, int64_t number)
{
	context->uc_mcontext.gregs[REG_RAX] = number;
	context->uc_mcontext.gregs[REG_RIP] -= 2;
}

/* What a signal handler finds in its third argument: all general registers, and the stack pointer. */
LW_INLINE uint32_t lw_context_regs(const ucontext_t *context, uint64_t *regs)
{
	__builtin_memcpy(regs, context->uc_mcontext.gregs, NGREG * sizeof(*regs));
	return NGREG;
}

/* The same registers in DWARF numbering, for an unwinder. */
LW_INLINE void lw_ptrace_regs_unwind(const uint64_t from[LW_PTRACE_REGS], uint64_t to[LW_NR_REGS])
{
	static const uint8_t at[LW_NR_REGS] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };

	for (int i = 0; i < LW_NR_REGS; i++)
		to[i] = from[at[i]];
}

LW_INLINE void lw_context_regs_unwind(const ucontext_t *context, uint64_t to[LW_NR_REGS])
{
	static const uint8_t at[LW_NR_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	for (int i = 0; i < LW_NR_REGS; i++)
		to[i] = (uint64_t)context->uc_mcontext.gregs[at[i]];
}

LW_INLINE uintptr_t lw_context_sp(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

_Static_assert(NGREG <= LW_PTRACE_REGS, "both fit the same room");

/* The way in for a thread that was sent somewhere else by ptrace: a fresh stack, the work, a stop. */
#define LW_KNOCK_ENTRY(stack_top, work) \
	"lea " stack_top "(%rip), %rsp\n\txor %ebp, %ebp\n\tcld\n\tcall " work "\n\tint3\n\thlt"

/* Where a handler that was set without libc returns to. */
#define LW_SIGNAL_RETURN "mov $15, %eax\n\tsyscall"

/*
 * Declares `call`, a struct lw_call on the stack: the frame pointer and the return address of a hook's caller, and
 * behind them its stack as it is after the return. Only valid in a function that is itself the hook (never inlined into
 * another function). The local whose address is given away keeps the compiler from ending the hook by a jump, which
 * would take the frame away under whoever was given `call`.
 */
#define LW_CALLER(call)                                                                            \
	char call##_stays_;                                                                        \
	const struct lw_call *const call = __builtin_frame_address(0);                             \
	__asm__ volatile("" : : "r"(&call##_stays_) : "memory")

#endif
