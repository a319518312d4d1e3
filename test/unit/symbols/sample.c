/* SPDX-License-Identifier: MIT */
/*
 * sample.c - the C half of the sample: inlined calls, a private function, assembler without a size.
 *
 * No call is the last thing that a function does, or the compiler would make a jump of it.
 */
#include "sample.h"

int sample_lines[NR_SAMPLE_PLACES];
const void *sample_returned_to;
const void *sample_hidden_returned_to;

/* In a section of its own: what follows in .text must not be taken for it. */
__asm__(".pushsection sample_asm, \"ax\"\n"
	".globl sample_unsized\n"
	"sample_unsized:\n"
	"nop\nnop\nnop\nret\n"
	".popsection\n");

__attribute__((noinline)) void sample_note(void)
{
	sample_returned_to = __builtin_return_address(0);
}

static inline __attribute__((always_inline)) void inner(int value)
{
	sample_lines[SAMPLE_INNER] = __LINE__ + 1;
	sample_note();
	sample_lines[SAMPLE_NOWHERE] += value;
}

static inline __attribute__((always_inline)) void middle(int value)
{
	sample_lines[SAMPLE_NOWHERE] += value;
	sample_lines[SAMPLE_MIDDLE] = __LINE__ + 1;
	inner(value + 1);
}

int sample_outer(int value)
{
	sample_lines[SAMPLE_OUTER] = __LINE__ + 1;
	middle(value);
	return sample_lines[SAMPLE_NOWHERE];
}

static __attribute__((noinline)) void hidden(int value)
{
	sample_hidden_returned_to = __builtin_return_address(0);
	sample_lines[SAMPLE_HIDDEN] = __LINE__ + 1;
	sample_note();
	sample_lines[SAMPLE_NOWHERE] += value;
}

int sample_hidden(int value)
{
	hidden(value);
	return sample_lines[SAMPLE_NOWHERE];
}

int __sample_alias(int value);

int __sample_alias(int value)
{
	sample_lines[SAMPLE_ALIAS] = __LINE__ + 1;
	sample_note();
	return value;
}

__attribute__((weak, alias("__sample_alias"))) int sample_alias(int value);
