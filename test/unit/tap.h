/* SPDX-License-Identifier: MIT */
/*
 * tap.h - the few words a unit test needs to speak TAP. Each check prints one line; done() prints
 * the plan and gives the exit status. Header only, so that a test is one file and the module.
 */
#ifndef LW_TEST_TAP_H
#define LW_TEST_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int tap_nr_run, tap_nr_failed;

/* Lines leave at once: a forked child would otherwise write again what its parent had still to say. */
__attribute__((constructor)) static void tap_start(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
}

/* The name may hold printf conversions. */
#define ok(good, ...) tap_ok((good), __FILE__, __LINE__, __VA_ARGS__)

#define is_u64(got, want, ...)                                                                     \
	do {                                                                                       \
		uint64_t tap_got_ = (uint64_t)(got), tap_want_ = (uint64_t)(want);                 \
		if (!ok(tap_got_ == tap_want_, __VA_ARGS__))                                       \
			printf("# got %" PRIu64 ", wanted %" PRIu64 "\n", tap_got_, tap_want_);    \
	} while (0)

#define is_str(got, want, ...)                                                                     \
	do {                                                                                       \
		const char *tap_got_ = (got), *tap_want_ = (want);                                 \
		if (!ok(tap_got_ && tap_want_ && !strcmp(tap_got_, tap_want_), __VA_ARGS__))       \
			printf("# got '%s', wanted '%s'\n", tap_got_ ? tap_got_ : "(null)",        \
					tap_want_ ? tap_want_ : "(null)");                         \
	} while (0)

__attribute__((format(printf, 4, 5), unused)) static bool tap_ok(
		bool good, const char *file, int line, const char *name, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_nr_run);
	va_start(ap, name);
	vprintf(name, ap);
	va_end(ap);
	putchar('\n');
	if (!good) {
		tap_nr_failed++;
		printf("# failed at %s:%d\n", file, line);
	}
	return good;
}

__attribute__((unused)) static int tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 0;
}

__attribute__((unused)) static int done(void)
{
	printf("1..%d\n", tap_nr_run);
	return tap_nr_failed != 0;
}

#endif
