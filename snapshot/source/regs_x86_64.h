/* SPDX-License-Identifier: MIT */
/*
 * regs_x86_64.h - what is the machine's in sending a stopped thread somewhere and back: names of its registers.
 */
#ifndef LW_SNAPSHOT_REGS_X86_64_H
#define LW_SNAPSHOT_REGS_X86_64_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/user.h>

enum { REGS_DIRECTION = 0x400, REGS_SYSCALL_BYTES = 2 };

static inline bool regs_is_in_call(const struct user_regs_struct *regs)
{
	return (int64_t)regs->orig_rax >= 0;
}

/* At pc, coming from no system call. */
static inline struct user_regs_struct regs_sent_to(const struct user_regs_struct *regs, uint64_t pc)
{
	struct user_regs_struct sent = *regs;

	sent.rip = pc;
	sent.orig_rax = (uint64_t)-1;
	sent.eflags &= ~(uint64_t)REGS_DIRECTION;
	return sent;
}

/* A call that came back with EINTR though no signal came is made again; the kernel sees to the others itself. */
static inline void regs_mend(struct user_regs_struct *regs)
{
	if (!regs_is_in_call(regs) || (int64_t)regs->rax != -EINTR || regs->orig_rax == SYS_close ||
		regs->orig_rax == SYS_connect)
		return;
	regs->rax = regs->orig_rax;
	regs->rip -= REGS_SYSCALL_BYTES;
}

#endif
