/* SPDX-License-Identifier: MIT */
/*
 * libc_names.c - the tables of glibc's functions that allocate: for themselves, or for their
 * caller.
 *
 * Written from the manuals and from what glibc 2.31 to 2.39 keep: a name is in `keeps` when nothing
 * the caller could do would release the block (there is no free function, or only freeres, which
 * tools call, releases it). It is in `gives` when the manual says who has to release it, or when
 * the block hangs on an object that the caller opened. scanf gives, because of its %m. A buffer of
 * a stream is told by the function in `internal` that makes it, so fopen may give, and printf and
 * fclose stand nowhere: what else they allocate is the text of open_memstream. A star ends a name
 * that is only a beginning.
 */
#include "snapshot/model/libc_names.h"

#include <string.h>

enum { NAME_BYTES = 64 };

/* a name a line would be pages */
/* clang-format off */
static const char *const keeps[] = {
	/* locale, messages, conversions loaded on first use */
	"setlocale", "localeconv", "nl_langinfo", "bindtextdomain", "bind_textdomain_codeset",
	"textdomain", "gettext", "dgettext", "dcgettext", "ngettext", "dngettext", "dcngettext",
	"iconv", "iconv_close", "mbrtowc", "mbtowc", "mbstowcs", "mbsrtowcs", "mbsnrtowcs", "mbrlen",
	"mblen", "wcrtomb", "wctomb", "wcstombs", "wcsrtombs", "wcsnrtombs", "btowc", "wctob",
	"rpmatch", "strfmon",
	/* time zone */
	"localtime", "localtime_r", "gmtime", "gmtime_r", "ctime", "ctime_r", "asctime", "mktime",
	"timelocal", "timegm", "tzset", "strftime", "strftime_l", "wcsftime", "strptime", "getdate",
	/* user, group, host and service databases: a buffer for the last answer, modules */
	"getpw*", "setpw*", "endpw*", "fgetpw*", "getgr*", "setgr*", "endgr*", "fgetgr*", "getsp*",
	"setsp*", "endsp*", "gethost*", "sethost*", "endhost*", "getserv*", "setserv*", "endserv*",
	"getproto*", "setproto*", "endproto*", "getnet*", "setnet*", "endnet*", "getrpc*", "getalias*",
	"getether*", "initgroups", "innetgr", "getmntent", "getusershell", "setusershell",
	"getlogin", "getlogin_r", "getutent", "getutid", "getutline", "getutxent", "getutxid",
	"getutxline", "getpass", "cuserid", "ttyname", "ptsname", "getnameinfo", "res_init",
	"res_ninit", "res_query", "res_search", "herror", "hstrerror", "inet_ntoa", "ether_ntoa",
	/* environment, ends, threads */
	"setenv", "putenv", "unsetenv", "clearenv", "atexit", "cxa_atexit", "cxa_thread_atexit_impl",
	"on_exit", "at_quick_exit", "cxa_at_quick_exit", "exit", "quick_exit", "run_exit_handlers",
	"pthread_create", "pthread_key_create", "pthread_setspecific", "pthread_atfork",
	"register_atfork", "pthread_exit", "pthread_cancel", "pthread_join", "thrd_create",
	"tss_create", "tss_set", "fork", "system", "call_tls_dtors", "libc_start_main",
	"libc_start_call_main", "libc_early_init", "start_thread", "clone", "clone3",
	/* loader */
	"dlopen", "dlmopen", "dlsym", "dlvsym", "dlclose", "dlerror", "dlinfo", "dladdr", "dladdr1",
	"dlopen_mode", "dlsym_internal", "dl_iterate_phdr", "backtrace", "dlerror_run",
	/* texts of errors */
	"strerror", "strerror_l", "strsignal", "perror", "psignal", "psiginfo", "error", "warn",
	"warnx", "err", "errx", "error_at_line", "fmtmsg",
	/* wide streams; the buffers of narrow ones are told by the function that makes them */
	"wprintf", "fwprintf", "vwprintf", "vfwprintf", "fputwc", "putwc", "putwchar", "fputws",
	"fgetwc", "getwc", "getwchar", "fgetws", "ungetwc", "fwide", "ungetc",
	"register_printf_function", "register_printf_specifier", "register_printf_modifier",
	"register_printf_type",
	/* the rest */
	"openlog", "syslog", "vsyslog", "closelog", "qsort", "qsort_r", "ecvt", "fcvt", "qecvt",
	"qfcvt", "aio_*", "lio_listio", "getaddrinfo_a", "monstartup", "mtrace",
};

static const char *const gives[] = {
	"strdup", "strndup", "wcsdup", "asprintf", "vasprintf", "getline", "getdelim",
	"open_memstream", "open_wmemstream", "fmemopen", "fopencookie", "fopen", "fdopen", "freopen",
	"tmpfile", "popen", "proc_open", "file_fopen", "opendir", "fdopendir", "scandir", "scandirat",
	"fts_open", "ftw", "nftw", "realpath", "canonicalize_file_name", "getcwd",
	"get_current_dir_name", "tempnam", "getaddrinfo", "getifaddrs", "if_nameindex", "newlocale",
	"duplocale", "iconv_open", "catopen", "open_catalog", "regcomp", "re_compile_pattern", "glob",
	"wordexp", "tsearch", "hsearch", "hsearch_r", "hcreate", "hcreate_r", "argz_create",
	"argz_create_sep", "argz_add", "argz_add_sep", "argz_append", "argz_insert", "argz_replace",
	"envz_add", "envz_merge", "scanf", "fscanf", "sscanf", "vscanf", "vfscanf", "vsscanf",
	"wscanf", "fwscanf", "swscanf", "backtrace_symbols", "posix_spawn_file_actions_addopen",
	"posix_spawn_file_actions_adddup2", "posix_spawn_file_actions_addclose",
	"posix_spawn_file_actions_addchdir_np", "pthread_attr_setaffinity_np", "pthread_getattr_np",
	"pthread_getattr_default_np", "sem_open", "timer_create", "setmntent", "obstack_begin",
	"obstack_newchunk", "reallocarray", "dprintf_alloc", "mq_open", "clnt_create",
	"clnttcp_create", "clntudp_create", "svctcp_create", "svcudp_create", "setstate",
};

static const char *const internal[] = {
	"file_doallocate", "default_doallocate", "wdefault_doallocate", "wfile_doallocate",
	"nss_database_get", "nss_lookup", "nss_lookup_function", "nss_next2", "nss_passwd_lookup2",
	"nss_group_lookup2", "nss_hosts_lookup2", "nss_services_lookup2", "nss_files_data_open",
	"check_pf", "nss_module_*", "nss_action_*", "nss_configure_lookup", "resolv_context_get*",
	"resolv_conf_*", "res_vinit", "res_maybe_init", "nl_load_locale*", "nl_find_locale",
	"nl_load_domain", "nl_find_domain", "gconv_get_cache", "gconv_get_alias_db",
	"gconv_get_modules_db", "gconv_load_cache", "gconv_load_conf", "gconv_find_shlib",
	"wcsmbs_load_conv", "tzfile_read", "tzset_parse_tz", "tzset_internal", "dl_catch_error",
	"dl_catch_exception", "dl_signal_error", "dl_signal_exception", "libc_unwind_link_get",
	"allocate_once_slow", "libc_allocate_once_slow", "call_init",
};

static const char *const calls_back[] = {
	"start_thread", "clone", "clone3", "libc_start_main", "libc_start_call_main",
	"run_exit_handlers", "call_tls_dtors", "cxa_finalize", "run_fork_handlers", "pthread_once",
	"pthread_once_slow", "qsort", "qsort_r", "dl_iterate_phdr", "nptl_deallocate_tsd",
};
/* clang-format on */

#define NR(table) (sizeof(table) / sizeof((table)[0]))

static bool drop_prefix(const char **name, const char *prefix)
{
	size_t bytes = strlen(prefix);

	if (strncmp(*name, prefix, bytes))
		return false;
	*name += bytes;
	return true;
}

static void drop_suffix(char *name, const char *suffix)
{
	size_t bytes = strlen(name), suffix_bytes = strlen(suffix);

	if (bytes > suffix_bytes && !strcmp(name + bytes - suffix_bytes, suffix))
		name[bytes - suffix_bytes] = '\0';
}

void libc_names_plain(const char *function, char *out, size_t out_bytes)
{
	static const char *const prefixes[] = {
		"_", "GI_", "IO_", "isoc99_", "isoc23_", "xpg_", "new_", "old_"};
	size_t bytes;

	for (size_t i = 0; i < NR(prefixes); i++)
		if (drop_prefix(&function, prefixes[i]))
			i = (size_t)-1; /* from the first again: they come in any order,
					   __GI___strdup */
	bytes = strcspn(function, "@(");
	if (bytes >= out_bytes)
		bytes = out_bytes - 1;
	memcpy(out, function, bytes);
	out[bytes] = '\0';
	drop_suffix(out, "_chk");
	drop_suffix(out, "_internal");
	drop_suffix(out, "64");
}

static bool is_in(const char *const *table, size_t nr, const char *plain)
{
	for (size_t i = 0; i < nr; i++) {
		size_t bytes = strlen(table[i]);
		bool is_open = table[i][bytes - 1] == '*';

		if (is_open ? !strncmp(table[i], plain, bytes - 1) : !strcmp(table[i], plain))
			return true;
	}
	return false;
}

enum libc_memory libc_names_memory(const char *function)
{
	char plain[NAME_BYTES];

	if (!function)
		return LIBC_UNKNOWN;
	libc_names_plain(function, plain, sizeof(plain));
	if (is_in(gives, NR(gives), plain))
		return LIBC_GIVES;
	return is_in(keeps, NR(keeps), plain) ? LIBC_KEEPS : LIBC_UNKNOWN;
}

static bool is_plain_in(const char *const *table, size_t nr, const char *function)
{
	char plain[NAME_BYTES];

	if (!function)
		return false;
	libc_names_plain(function, plain, sizeof(plain));
	return is_in(table, nr, plain);
}

bool libc_names_is_internal(const char *function)
{
	return is_plain_in(internal, NR(internal), function);
}

bool libc_names_calls_back(const char *function)
{
	return is_plain_in(calls_back, NR(calls_back), function);
}
