/* SPDX-License-Identifier: MIT */
/*
 * Two functions without unwind information call malloc and free: one with an absurd frame pointer,
 * one that has moved the stack pointer by an odd number of words. The stack ends there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

void *bare_absurd(void);
void *bare_moved(void);

__asm__(".text\n"
	".type bare_absurd, @function\n"
	"bare_absurd:\n"
	"	push %rbp\n"
	"	mov $0x7ffffffffff1, %rbp\n"
	"	mov $56, %edi\n"
	"	call malloc@PLT\n"
	"	pop %rbp\n"
	"	ret\n"
	".size bare_absurd, .-bare_absurd\n"
	".type bare_moved, @function\n"
	"bare_moved:\n"
	"	sub $136, %rsp\n"
	"	mov $3, %edi\n"
	"	mov $8, %esi\n"
	"	call calloc@PLT\n"
	"	add $136, %rsp\n"
	"	ret\n"
	".size bare_moved, .-bare_moved\n");

FRAME static void call_bare(void)
{
	hold(bare_absurd());
	hold(bare_moved());
	free(hold(bare_absurd()));
}

FRAME static void ordinary(void)
{
	free(hold(malloc(99)));
}

int main(void)
{
	for (int i = 0; i < 4; i++) {
		call_bare();
		ordinary();
	}
	puts("bare");
	return 0;
}
