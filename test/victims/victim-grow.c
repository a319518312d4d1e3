/* SPDX-License-Identifier: MIT */
/* A block that is moved a thousand times is one block; refused requests are none. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "victim.h"

FRAME static void grow(void)
{
	char *p = NULL;

	for (size_t n = 1; n <= 1500; n++) {
		p = realloc(p, n * 7);
		hold(p);
	}
}

FRAME static void shrink(void)
{
	void *p = hold(malloc(9000));

	for (size_t n = 8000; n >= 1000; n -= 1000)
		p = hold(realloc(p, n));
}

FRAME static int refused(void)
{
	void *p = hold(malloc(33)), *q, *same = hold(p);
	int good = 0;

	errno = 0;
	q = realloc(same, opaque(PTRDIFF_MAX - 64));
	good += !q && errno == ENOMEM;
	errno = 0;
	q = reallocarray(hold(same), opaque(SIZE_MAX / 2), opaque(4));
	good += !q && errno == ENOMEM;
	free(p); /* still there, still ours */
	return good;
}

FRAME static void to_nothing(void)
{
	void *p = hold(malloc(50));

	p = realloc(p, opaque(0)); /* glibc frees */
	hold(p);
}

FRAME static void from_nothing(void)
{
	hold(realloc(NULL, 21));
	hold(reallocarray(NULL, 3, 7));
}

int main(void)
{
	int good;

	grow();
	shrink();
	good = refused();
	to_nothing();
	from_nothing();
	printf("refused %d\n", good);
	return 0;
}
