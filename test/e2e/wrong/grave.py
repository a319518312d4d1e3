#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong releases that end the process are told before they do, and so are second releases and sites of unknown ones.

usage: grave.py BUILD-FOLDER. The article's figures: the array cookie in both directions, the immediate warning, its
four cases. Each program does one thing and prints "alive" if it outlives it."""
import os

from common import HEADERS, LEVELS, PAIRS, Run, build, check, done, write

SOURCE = '''#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include "leakwatch.h"
#include "leakwatch_on.h"
template <class T> static T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
struct Counted { ~Counted() { __asm__ volatile(""); } int n; };
struct alignas(16) Counted16 { ~Counted16() { __asm__ volatile(""); } char c[16]; };
struct alignas(64) Counted64 { ~Counted64() { __asm__ volatile(""); } char c[64]; };
struct Large { char c[1900]; };
struct Virtual { virtual ~Virtual() {} long x = 0; };
#define CASE(name) __attribute__((noinline, no_icf)) static void name()
#define END __asm__ volatile("") // so that no release is a jump
CASE(cookie) {
	delete hide(new Counted[3]); /*cookie*/
	END;
}
CASE(cookie_16) {
	delete hide(new Counted16[3]); /*cookie_16*/
	END;
}
CASE(cookie_64) {
	delete hide(new Counted64[3]); /*cookie_64*/
	END;
}
CASE(cookie_virtual) {
	delete hide(new Virtual[2]); /*cookie_virtual*/
	END;
}
CASE(cookie_free) {
	free(hide(new Counted[3])); /*cookie_free*/
	END;
}
CASE(no_cookie) {
	delete[] hide(new Counted); /*no_cookie*/
	END;
}
CASE(double_free) {
	void *p = hide(malloc(40)); free(hide(p));
	free(hide(p)); /*double_free*/
	END;
}
CASE(double_big) {
	void *p = hide(malloc(900000)); free(hide(p));
	free(hide(p)); /*double_big*/
	END;
}
CASE(double_middle) { // so large that its size has no room of its own in the record
	void *p = hide(malloc(100000)), *wall = hide(malloc(40)); free(hide(p));
	free(hide(p)); /*double_middle*/
	free(wall);
}
CASE(double_beside) { // glibc puts another block 16 bytes further, as if delete[] had looked for a count before it
	void *a = hide(malloc(24)); char *b = hide(new char[2000]); void *wall = hide(malloc(10));
	delete[] hide(b); a = hide(realloc(a, 40)); Large *d = hide(new Large);
	delete[] hide(b);
	delete hide(d); free(a); free(wall);
}
CASE(double_delete) {
	int *p = hide(new int); delete hide(p);
	delete hide(p); /*double_delete*/
	END;
}
CASE(double_realloc) {
	void *p = hide(malloc(40)), *wall = hide(malloc(40)), *q = hide(realloc(hide(p), 4000));
	free(hide(p)); /*double_realloc*/
	free(q); free(wall);
	END;
}
CASE(realloc_freed) {
	void *p = hide(malloc(40)); free(hide(p));
	p = hide(realloc(hide(p), 50)); /*realloc_freed*/
	END;
}
CASE(unknown) {
	static char never[64];
	free(hide(never + 16)); /*unknown*/
	END;
}
CASE(stack) {
	alignas(16) char never[64];
	delete hide((long *)(void *)never); /*stack*/
	END;
}
int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "";
	setvbuf(stdout, nullptr, _IONBF, 0);
#define RUN(name) if (!strcmp(what, #name)) name()
	RUN(cookie); RUN(cookie_16); RUN(cookie_64); RUN(cookie_virtual); RUN(cookie_free); RUN(no_cookie);
	RUN(double_free); RUN(double_big); RUN(double_middle); RUN(double_beside); RUN(double_delete); RUN(double_realloc); RUN(realloc_freed);
	RUN(unknown); RUN(stack);
	puts("alive");
}
'''
# what -> (event, allocation, release, text on stderr)
EXPECTED = {
    'cookie': ('mismatch', 'new[]', 'delete', 'bytes into it, behind the count'),
    'cookie_16': ('mismatch', 'new[]', 'delete', '16 bytes into it'),
    'cookie_64': ('mismatch', 'new[]', 'delete', '64 bytes into it'),
    'cookie_virtual': ('mismatch', 'new[]', 'delete', '8 bytes into it'),
    'cookie_free': ('mismatch', 'new[]', 'free', '8 bytes into it'),
    'no_cookie': ('mismatch', 'new', 'delete[]', '8 bytes before it'),
    'double_free': ('double-free', 'malloc', 'free', 'Double free: a block of 40 bytes'),
    'double_big': ('double-free', 'malloc', 'free', '(900000 bytes) was released again'),
    'double_middle': ('double-free', 'malloc', 'free', '(100000 bytes) was released again'),
    'double_delete': ('double-free', 'new', 'delete', 'Double free: a block of 4 bytes'),
    'double_realloc': ('double-free', 'malloc', 'free', 'Double free: a block of 40 bytes'),
    'realloc_freed': ('double-free', 'malloc', 'realloc', 'Double free: a block of 40 bytes'),
    'unknown': ('unknown-free', None, 'free', 'Unknown free'),
    'stack': ('unknown-free', None, 'delete', 'Unknown free'),
}
TEXTS = {'mismatch': 'Mismatch: ', 'double-free': 'Double free: ', 'unknown-free': 'Unknown free: '}


def main():
    source = write('grave.cc', SOURCE)
    lines = {name: nr for nr, text in enumerate(SOURCE.split('\n'), 1) for name in EXPECTED if f'/*{name}*/' in text}
    for _, cxx in PAIRS:
        for level in LEVELS:
            for macros in [], ['-DLEAKWATCH']:
                program = build('grave', cxx, '-std=c++17', '-fsized-deallocation', '-g', level, '-w', *macros,
                                f'-I{HEADERS}', source)
                if not program:
                    continue
                for what, (event, allocated, released, text) in EXPECTED.items():
                    if event == 'unknown-free' and not macros:
                        continue # without a macro it may be anybody's memory
                    if what == 'realloc_freed' and 'clang' in cxx and level == '-O2':
                        continue # it sees through and drops the call
                    one(' '.join([cxx, level, *macros, what]), Run(program, what), lines[what],
                        (event, allocated, released, text), macros)
                run = Run(program, 'double_beside') # what was there is not known any more: the block beside it is not blamed
                check(f'{cxx} {level} double_beside: no other block is blamed', 'Mismatch' not in run.err, run.err)
                if not macros:
                    run = Run(program, 'unknown')
                    check(f'{cxx} {level} unknown, without macros: nothing is said',
                          'LeakWatch' not in run.err, *run.texts())
    # nobody to ask for names: what is known is said all the same
    run = Run(program, 'double_free', options='programs=/nonexistent')
    check('without leakwatch-snapshot: numbers, before the end', 'double free of a block of 40 byte(s)' in run.err
          and '(' + os.path.basename(program) not in run.err and '+0x' in run.err, run.err)
    run = Run(program, 'double_free', options='report=never')
    check('report=never says nothing', 'Double' not in run.err, run.err)
    log = os.path.join(os.path.dirname(program), 'log')
    run = Run(program, 'double_free', options=f'log_path={log}')
    with open(log, encoding='utf-8') as file:
        check('log_path takes it', 'Double free: ' in file.read() and 'Double free: ' not in run.err, run.err)
    done()


def one(name, run, line, expected, macros):
    event, allocated, released, text = expected
    told = run.err.find(TEXTS[event])
    good = check(f'{name}: is told, with its line',
                 told >= 0 and text in run.err and f'grave.cc:{line}' in run.err, run.err)
    if macros and good:
        check(f'{name}: the macro says so too', 'released at ' in run.err and f'grave.cc:{line}:\n' in run.err, run.err)
    died = run.status != 0
    if died: # glibc's own words come after
        at = max(run.err.find('free(): '), run.err.find('munmap_chunk(): '), run.err.find('realloc(): '))
        check(f'{name}: before the process dies', at < 0 or told < at, run.err)
        return
    events = [(w, e.get('alloc_kind'), e.get('free_kind'), l) for w, l, e in run.events()]
    check(f'{name}: is in the report', (event, allocated, released, line) in events, events)


main()
