/* SPDX-License-Identifier: MIT */
/*
 * unit-verdict.c - which memory of libc, the loader and libstdc++ is their own, and that no leak of
 * the program is ever taken for it.
 */
#include "test/unit/tap.h"

#include "snapshot/model/libc_names.h"
#include "snapshot/model/verdict.h"

#define U(name)                                                                                    \
	{                                                                                          \
		VERDICT_USER, name                                                                 \
	}
#define C(name)                                                                                    \
	{                                                                                          \
		VERDICT_LIBC, name                                                                 \
	}
#define L(name)                                                                                    \
	{                                                                                          \
		VERDICT_LOADER, name                                                               \
	}
#define X(name)                                                                                    \
	{                                                                                          \
		VERDICT_CXX, name                                                                  \
	}
#define W(name)                                                                                    \
	{                                                                                          \
		VERDICT_OWN, name                                                                  \
	}

static const struct {
	const char *what;
	struct verdict_frame frames[8];
	size_t nr_frames;
	const char *callee;
	bool is_runtime;
} cases[] = {
	{"malloc in main", {U("main")}, 1, NULL, false},
	{"no stack", {U(NULL)}, 0, NULL, false},
	{"strdup", {C("__strdup"), U("f"), U("main")}, 3, "strdup", false},
	{"strdup, alias only", {C("__GI___strdup"), U("f")}, 2, NULL, false},
	{"strdup inside setlocale", {C("__strdup"), C(NULL), C("setlocale"), U("f")}, 4,
		"setlocale", true},
	{"setlocale without names", {C(NULL), C(NULL), U("f")}, 3, "setlocale", true},
	{"unknown libc function", {C("frobnicate"), U("f")}, 2, "frobnicate", false},
	{"nameless libc function", {C(NULL), U("f")}, 2, NULL, false},
	{"buffer of stdout", {C("_IO_file_doallocate"), C("_IO_doallocbuf"), C("puts"), U("f")}, 4,
		"puts", true},
	{"buffer of a stream", {C("_IO_file_doallocate"), C(NULL), C("fread"), U("f")}, 4, "fread",
		true},
	{"fopen", {C("__fopen_internal"), U("f")}, 2, "fopen64", false},
	{"text of open_memstream", {C("_IO_mem_finish"), C("fclose"), U("f")}, 3, "fclose", false},
	{"fortified asprintf", {C("__vasprintf_internal"), C("___asprintf_chk"), U("f")}, 3,
		"__asprintf_chk", false},
	{"handle of iconv_open", {C("__gconv_open"), C("iconv_open"), U("f")}, 3, "iconv_open",
		false},
	{"tables of iconv_open", {C(NULL), C("__gconv_open"), C("iconv_open"), U("f")}, 4,
		"iconv_open", true},
	{"getpwuid", {C(NULL), C("getpwuid"), U("f")}, 3, "getpwuid", true},
	{"NSS inside getaddrinfo", {C(NULL), C("__nss_database_get"), C("getaddrinfo"), U("f")}, 4,
		"getaddrinfo", true},
	{"result of getaddrinfo", {C("gaih_inet"), C("getaddrinfo"), U("f")}, 3, "getaddrinfo",
		false},
	{"setenv", {C("__add_to_environ"), C("setenv"), U("f")}, 3, "setenv", true},
	{"thread's TLS", {L("_dl_allocate_tls"), C("pthread_create"), U("f")}, 3, "pthread_create",
		true},
	{"dlopen", {L("_dl_map_object"), L(NULL), C("dlopen"), U("f")}, 4, "dlopen", true},
	{"emergency pool", {X(NULL), L("call_init"), L("_dl_init"), L("_dl_start_user")}, 4, NULL,
		true},
	{"emergency pool of a plugin's libstdc++",
		{X(NULL), L("call_init"), L("dl_open_worker"), C("dlopen"), U("main")}, 5, NULL,
		true},
	{"emergency pool, static", {U("_GLOBAL__sub_I__ZN9__gnu_cxx9__freeresEv"), L("call_init")},
		2, NULL, true},
	{"std::string of a constructor",
		{X("std::string::_M_create"), U("_GLOBAL__sub_I_x"), L("call_init")}, 3, NULL,
		false},
	{"std::string", {X("std::string::_M_create"), U("f")}, 2, NULL, false},
	{"cut stack in libstdc++", {X("std::string::_M_create")}, 1, NULL, false},
	{"a cut stack that reaches the loader", {X(NULL), L("call_init")}, 2, NULL, true},
	{"thread function that jumps to strdup", {C("__strdup"), C("start_thread"), C("__clone3")},
		3, NULL, false},
	{"comparison that jumps to strdup",
		{C("__strdup"), C("msort_with_tmp"), C("qsort_r"), U("f")}, 4, "qsort", false},
	{"exit handler that jumps to strdup",
		{C("__strdup"), C("__run_exit_handlers"), C("exit"), U("f")}, 4, "exit", false},
	{"constructor that jumps to strdup", {C("__strdup"), L("call_init"), L("_dl_init")}, 3,
		NULL, false},
	{"caller that jumps to strdup", {C("__strdup"), U("main")}, 2, "helper", false},
	{"caller named like nothing, setlocale", {C(NULL), C("setlocale"), U("main")}, 3, "helper",
		true},
	{"behind our own frames", {W("malloc"), W("x"), C(NULL), U("main")}, 4, "localtime", true},
	{"only our own frames", {W("malloc")}, 1, NULL, false},
	{"user callback under libc", {U("cmp"), C("qsort"), U("main")}, 3, NULL, false},
};

static void test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verdict_stack stack = {
			.frames = cases[i].frames, .nr_frames = cases[i].nr_frames};
		const char *through;

		/* as the caller of it does */
		if (verdict_libc_end(stack.frames, stack.nr_frames))
			stack.callee = cases[i].callee;
		ok(!verdict_runtime(&stack, &through) == !cases[i].is_runtime, "%s: %s",
			cases[i].what, cases[i].is_runtime ? "runtime" : "the program's");
	}
}

static const struct {
	const char *path;
	enum verdict_owner owner;
} owners[] = {
	{"/lib/x86_64-linux-gnu/libc.so.6", VERDICT_LIBC},
	{"/lib/libc-2.31.so", VERDICT_LIBC},
	{"/lib64/ld-linux-x86-64.so.2", VERDICT_LOADER},
	{"/usr/lib/libstdc++.so.6.0.30", VERDICT_CXX},
	{"/usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", VERDICT_LIBC},
	{"/lib/libnss_files.so.2", VERDICT_LIBC},
	{"/opt/lib/leakwatch/libleakwatch.so", VERDICT_OWN},
	{"/opt/libcurl.so.4", VERDICT_USER},
	{"/opt/libc.so.6/app", VERDICT_USER},
	{"app", VERDICT_USER},
	{"", VERDICT_USER},
	{NULL, VERDICT_USER},
};

static const struct {
	const char *name, *plain;
} plain_names[] = {
	{"__strdup", "strdup"},
	{"__GI___strdup", "strdup"},
	{"_IO_fopen@@GLIBC_2.2.5", "fopen"},
	{"__asprintf_chk", "asprintf"},
	{"fopen64", "fopen"},
	{"__isoc99_sscanf", "sscanf"},
	{"", ""},
	{"____", ""},
};

int main(void)
{
	char plain[64];

	test_cases();
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		is_u64(verdict_owner(owners[i].path), owners[i].owner, "owner of %s",
			owners[i].path ? owners[i].path : "(nothing)");
	for (size_t i = 0; i < sizeof(plain_names) / sizeof(plain_names[0]); i++) {
		libc_names_plain(plain_names[i].name, plain, sizeof(plain));
		is_str(plain, plain_names[i].plain, "plain name of '%s'", plain_names[i].name);
	}
	for (int i = 0; i < NR_VERDICTS; i++)
		ok(verdict_name(i) && verdict_heading(i), "verdict %d has names", i);
	return done();
}
