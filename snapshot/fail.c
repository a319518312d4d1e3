/* SPDX-License-Identifier: MIT */
/* fail.c - see fail.h. */
#include "snapshot/fail.h"

#include <stdio.h>
#include <stdlib.h>

static int status_of_failure = 1;

void fail_with(int status)
{
	status_of_failure = status;
}

void fail(const char *why)
{
	(void)fprintf(stderr, "leakwatch-snapshot: %s\n", why);
	exit(status_of_failure);
}
