/* SPDX-License-Identifier: MIT */
/*
 * fixed.c - a program that is not position independent: prints where its call returns to.
 */
#include "sample.h"

#include <stdio.h>

int main(void)
{
	sample_outer(1);
	printf("%p\n", sample_returned_to);
	return 0;
}
