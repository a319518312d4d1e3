/* SPDX-License-Identifier: MIT */
/*
 * verdict.c - tells memory that the C library, the loader and libstdc++ keep for themselves.
 *
 * Such memory is nobody's leak, and listing it would bury what is. But hiding a real leak is worse
 * than showing one block too many, so the rule is narrow: the innermost frame must be in one of
 * those libraries, and either the loader allocated for itself, or no code of the program is between
 * the library and its start (the emergency pool), or the libc function that was called is known to
 * keep what it allocates. Everything else is the caller's.
 *
 * The libc function is best told by the call instruction in its caller: libc has many names for one
 * address and local functions without any. That name is a hint only where it is a libc name (a
 * tail call may have replaced the callee), else the outermost libc frame decides.
 */
#include "snapshot/model/verdict.h"

#include <string.h>

#include "snapshot/model/libc_names.h"

static const struct {
	const char *name, *heading;
	int rank;
	bool is_leak;
} verdicts[NR_VERDICTS] = {
	[VERDICT_LOST] = {"lost", "Lost", 0, true},
	[VERDICT_GROWING] = {"growing", "Growing", 1, true},
	[VERDICT_INDIRECT] = {"indirect", "Lost indirectly", 2, true},
	[VERDICT_HELD] = {"held", "Held", 3, true},
	[VERDICT_UNFREED] = {"unfreed", "Unfreed", 4, true},
	[VERDICT_REACHABLE] = {"reachable", "Still reachable", 5, false},
	[VERDICT_BOUNDED] = {"bounded", "Bounded", 6, false},
	[VERDICT_RUNTIME] = {"runtime", "Runtime", 7, false},
};

const char *verdict_name(enum verdict verdict)
{
	return verdicts[verdict].name;
}

const char *verdict_heading(enum verdict verdict)
{
	return verdicts[verdict].heading;
}

int verdict_rank(enum verdict verdict)
{
	return verdicts[verdict].rank;
}

bool verdict_is_leak(enum verdict verdict)
{
	return verdicts[verdict].is_leak;
}

enum verdict verdict_with_growth(enum verdict verdict, enum growth_kind kind, bool is_held)
{
	if (verdict != VERDICT_UNFREED && verdict != VERDICT_REACHABLE)
		return verdict;
	if (is_held)
		return VERDICT_HELD;
	return kind == GROWTH_GROWING ? VERDICT_GROWING : kind == GROWTH_BOUNDED ? VERDICT_BOUNDED : verdict;
}

static const struct {
	const char *beginning; /* of the file's name */
	enum verdict_owner owner;
} owners[] = {
	{"libc.so", VERDICT_LIBC},
	{"libc-2.", VERDICT_LIBC},
	{"libpthread.so", VERDICT_LIBC},
	{"libpthread-2.", VERDICT_LIBC},
	{"libdl.so", VERDICT_LIBC},
	{"libdl-2.", VERDICT_LIBC},
	{"librt.so", VERDICT_LIBC},
	{"librt-2.", VERDICT_LIBC},
	{"libm.so", VERDICT_LIBC},
	{"libm-2.", VERDICT_LIBC},
	{"libmvec.so", VERDICT_LIBC},
	{"libresolv.so", VERDICT_LIBC},
	{"libresolv-2.", VERDICT_LIBC},
	{"libanl.so", VERDICT_LIBC},
	{"libutil.so", VERDICT_LIBC},
	{"libnss_", VERDICT_LIBC},
	{"ld-linux", VERDICT_LOADER},
	{"ld-2.", VERDICT_LOADER},
	{"ld.so", VERDICT_LOADER},
	{"libstdc++.so", VERDICT_CXX},
	{"libc++.so", VERDICT_CXX},
	{"libc++abi.so", VERDICT_CXX},
	{"libgcc_s.so", VERDICT_CXX},
	{"libleakwatch.so", VERDICT_OWN},
};

enum verdict_owner verdict_owner(const char *module_path)
{
	const char *name;

	if (!module_path)
		return VERDICT_USER;
	name = strrchr(module_path, '/');
	name = name ? name + 1 : module_path;
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (!strncmp(name, owners[i].beginning, strlen(owners[i].beginning)))
			return owners[i].owner;
	/* conversion modules have names like ISO8859-1.so */
	return strstr(module_path, "/gconv/") ? VERDICT_LIBC : VERDICT_USER;
}

size_t verdict_first_user(const struct verdict_frame *frames, size_t nr_frames)
{
	size_t i = 0;

	while (i < nr_frames && frames[i].owner != VERDICT_USER)
		i++;
	return i;
}

/* libstdc++'s pool for exceptions when memory is out, also where it is linked into the program. */
static bool is_emergency_pool(const char *function)
{
	return function && (strstr(function, "_GLOBAL__sub_I__ZN9__gnu_cxx9__freeres") ||
				   strstr(function, "_GLOBAL__sub_I_eh_alloc.cc"));
}

/* The innermost frames that are libc's, [first, end), up to one that calls the program back. */
static size_t libc_run(const struct verdict_frame *frames, size_t nr_frames, size_t *first)
{
	size_t end;

	*first = 0;
	while (*first < nr_frames && frames[*first].owner == VERDICT_OWN)
		++*first;
	for (end = *first; end < nr_frames && frames[end].owner == VERDICT_LIBC; end++)
		if (end > *first && libc_names_calls_back(frames[end].function))
			break;
	return end;
}

size_t verdict_libc_end(const struct verdict_frame *frames, size_t nr_frames)
{
	size_t first, end = libc_run(frames, nr_frames, &first);

	return end == first || end == nr_frames || frames[end].owner == VERDICT_LIBC ? 0 : end;
}

static const char *outermost_name(const struct verdict_frame *frames, size_t first, size_t end)
{
	const char *name = NULL;

	for (size_t i = first; i < end; i++)
		if (frames[i].function)
			name = frames[i].function;
	return name;
}

/*
 * Made while the library itself is started by the loader, be it at the start of the process or by
 * dlopen: no code of the program stands before the loader's.
 */
static bool is_own_start(const struct verdict_stack *stack, size_t first, size_t end)
{
	const struct verdict_frame *frames = stack->frames;
	size_t i = first;

	if (libc_names_memory(outermost_name(frames, first, end)) == LIBC_GIVES)
		return false; /* a constructor of the program that ended in a jump to it */
	while (i < stack->nr_frames &&
		(frames[i].owner == VERDICT_LIBC || frames[i].owner == VERDICT_CXX))
		i++;
	return i < stack->nr_frames && frames[i].owner == VERDICT_LOADER;
}

/* Blocks inside iconv_open that are not the handle are gconv's tables. */
static bool is_behind_gconv_open(const struct verdict_frame *frames, size_t first, size_t end)
{
	char plain[32];

	for (size_t i = first + 1; i < end; i++) {
		if (!frames[i].function)
			continue;
		libc_names_plain(frames[i].function, plain, sizeof(plain));
		if (!strcmp(plain, "gconv_open"))
			return true;
	}
	return false;
}

static const char *libc_keeps(
	const struct verdict_stack *stack, size_t first, size_t end, const char **through)
{
	const struct verdict_frame *frames = stack->frames;
	const char *outermost = outermost_name(frames, first, end);
	enum libc_memory memory = libc_names_memory(stack->callee);

	*through = memory != LIBC_UNKNOWN || !outermost ? stack->callee : outermost;
	for (size_t i = first; i < end; i++)
		if (libc_names_is_internal(frames[i].function))
			return "the C library (stream buffers, databases, tables)";
	if (is_behind_gconv_open(frames, first, end))
		return "the C library (tables of iconv)";
	if (memory == LIBC_UNKNOWN)
		memory = libc_names_memory(outermost);
	return memory == LIBC_KEEPS ? "the C library" : NULL;
}

const char *verdict_runtime(const struct verdict_stack *stack, const char **through)
{
	const struct verdict_frame *frames = stack->frames;
	size_t first, end = libc_run(frames, stack->nr_frames, &first);

	*through = NULL;
	if (first == stack->nr_frames)
		return NULL;
	if (is_emergency_pool(frames[first].function) ||
		(first + 1 < stack->nr_frames && is_emergency_pool(frames[first + 1].function)))
		return "libstdc++ (emergency pool)";
	if (frames[first].owner == VERDICT_LOADER)
		return "the loader";
	if (frames[first].owner == VERDICT_USER)
		return NULL;
	if (is_own_start(stack, first, end))
		return "the C and C++ libraries (made while they start)";
	return frames[first].owner == VERDICT_LIBC ? libc_keeps(stack, first, end, through) : NULL;
}
