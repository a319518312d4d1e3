/* SPDX-License-Identifier: MIT */
/* More than 4 GiB, nothing, odd alignments; what is refused is refused as libc does it. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "victim.h"

FRAME static void reserve(void)
{
	for (int i = 0; i < 3; i++)
		hold(malloc((size_t)2000 << 20)); /* never touched */
}

FRAME static void nothing(void)
{
	for (int i = 0; i < 5; i++)
		hold(malloc(opaque(0)));
}

FRAME static int aligned(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = NULL;
	int good = 0;

	good += !posix_memalign(&p, 64, 100) && (uintptr_t)hold(p) % 64 == 0;
	good += (uintptr_t)hold(aligned_alloc(256, 512)) % 256 == 0;
	good += (uintptr_t)hold(memalign(1024, 10)) % 1024 == 0;
	good += (uintptr_t)hold(valloc(3)) % page == 0;
	p = pvalloc(5);
	good += (uintptr_t)hold(p) % page == 0 && malloc_usable_size(p) >= page;
	return good;
}

FRAME static int aligned_and_freed(void)
{
	int good = 0;

	for (size_t align = 8; align <= 65536; align *= 2) {
		void *p = NULL;

		good += !posix_memalign(&p, align, align + 1) && (uintptr_t)p % align == 0;
		free(hold(p));
	}
	return good;
}

FRAME static int refused(void)
{
	void *p = (void *)1, *q;
	int good = 0;

	good += posix_memalign(&p, opaque(24), 8) == EINVAL && p == (void *)1;
	good += posix_memalign(&p, 64, opaque(PTRDIFF_MAX - 64)) == ENOMEM && p == (void *)1;
	errno = 0;
	q = calloc(opaque(SIZE_MAX / 4), opaque(8));
	good += !q && errno == ENOMEM;
	errno = 0;
	q = malloc(opaque(PTRDIFF_MAX));
	good += !q && errno == ENOMEM;
	errno = 77;
	free(hold(malloc(1 << 20)));
	good += errno == 77;
	return good;
}

int main(void)
{
	int is_errno_clear = !errno;

	reserve();
	nothing();
	printf("errno %d aligned %d %d refused %d\n", is_errno_clear, aligned(), aligned_and_freed(),
			refused());
	return 0;
}
