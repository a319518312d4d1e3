#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which line a wrong release is given: nested deletes, files with and without macros, and sites that never arrive.

usage: orders.py BUILD-FOLDER. Lines are found by the marks /*name*/ in the sources below."""
import re

from common import HEADERS, LEVELS, PAIRS, Run, build, check, done, each, write

SHARED = '''#include <cstdlib>
struct B { long x; };
struct Plain { B *b; ~Plain(); };
struct Virtual { B *b; virtual ~Virtual(); };
void free_elsewhere(void *p);
void delete_elsewhere(Plain *p);
template <class T> T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
#define NI __attribute__((noinline))
'''
# a file without macros: the article's third party
OTHER = '''#include "shared.h"
NI Plain::~Plain() { delete b; /*plain-other*/ }
NI Virtual::~Virtual() { delete b; /*virtual-other*/ }
NI void free_elsewhere(void *p) { free(p); /*free-other*/ }
NI void delete_elsewhere(Plain *p) { delete p; /*delete-other*/ }
'''
MAIN = '''#include <csetjmp>
#include <memory>
#include <string>
#include "shared.h"
#include "leakwatch.h"
#include "leakwatch_on.h"
struct In { B *b; NI ~In() {
	delete b; /*inner*/
} };
struct InVirtual { B *b; NI virtual ~InVirtual() {
	delete b; /*inner-virtual*/
} };
struct Deep { In *in; NI ~Deep() {
	delete in; /*deep-middle*/
} };
struct Own { std::string s; Own() : s(50, 's') {} };
struct Thrower { NI ~Thrower() noexcept(false) { throw 1; } };
static jmp_buf env;
struct Jumper { NI ~Jumper() { longjmp(env, 1); } };
static B *wrong() { return hide((B *)malloc(8)); }
template <class T> static T *wrong_object() { T *t = hide((T *)calloc(1, sizeof(T))); t->b = wrong(); return t; }

NI static void nested() {
	delete wrong_object<In>(); /*nested*/
}
NI static void nested_other() {
	delete wrong_object<Plain>(); /*nested-other*/
}
NI static void nested_virtual() {
	InVirtual *v = new InVirtual; v->b = wrong();
	delete hide(v);
}
NI static void nested_virtual_other() {
	Virtual *v = new Virtual; v->b = wrong();
	delete hide(v);
}
NI static void three_deep() {
	Deep *d = hide((Deep *)malloc(sizeof(Deep))); d->in = wrong_object<In>();
	delete d; /*deep-outer*/
}
NI static void only_inner() {
	In *in = new In; in->b = wrong();
	delete hide(in);
}
NI static void only_outer() {
	In *in = wrong_object<In>(); delete hide((char *)malloc(1)); /*inner-none*/ free(in->b); in->b = new B;
	delete in; /*outer-only*/
}
NI static void third_party() { // (1) of the article: no macro on either side
	Plain *p = new Plain; p->b = wrong();
	delete_elsewhere(p);
}
NI static void never_arrives() {
	B *nothing = hide((B *)nullptr);
	delete nothing;
	free_elsewhere(hide(new int));
	delete wrong(); /*after-nothing*/
}
NI static void thrown() {
	try { delete hide(new Thrower); } catch (int) {}
	free_elsewhere(hide(new int));
	delete wrong(); /*after-throw*/
}
NI static void jump_out() {
	delete hide(new Jumper);
}
NI static void jumped() {
	if (!setjmp(env))
		jump_out();
	free_elsewhere(hide(new int));
	delete wrong(); /*after-jump*/
}
NI static void one_expression() {
	B *a = wrong(), *b = hide((B *)nullptr), *c = wrong();
	delete a, /*comma-a*/
		delete b,
		delete c; /*comma-c*/
	a = wrong();
	c ? delete a /*condition*/
	  : delete c;
}
NI static void members_first() {
	Own *own = new (hide((Own *)malloc(sizeof(Own)))) Own;
	delete own; /*members*/
}
NI static void in_arguments() {
	free((free_elsewhere(hide(new int)), hide(new int))); /*arguments*/
}
NI static void of_c() {
	char *s = hide(strdup("text")), *t = (char *)realloc(hide(malloc(3)), 30);
	delete s; /*strdup*/
	delete[] t; /*realloc*/
	free(hide(new int)); /*free*/
	void *p = hide(realloc((hide(new int)), 40)); /*realloc-new*/
	free(p);
}
int main() {
	nested(); nested_other(); nested_virtual(); nested_virtual_other(); three_deep(); only_inner(); only_outer();
	third_party(); never_arrives(); thrown(); jumped(); one_expression(); members_first(); in_arguments(); of_c();
}
'''
C_SOURCE = '''#include <stdint.h>
#include <stdlib.h>
#include "leakwatch.h"
#define NI __attribute__((noinline))
#define END __asm__ volatile("")
void *new_int(void);
static void *hide(void *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
static volatile size_t huge = SIZE_MAX / 2;
static volatile int nr_times = 2;
NI void last(void *p) {
	free(p); /*last*/
}
NI void last_of_two(void *p, void *q) {
	free(p); /*last-before*/
	free(q); /*last-two*/
}
NI void *copied_last(const char *s) {
	return strdup(s); /*copied-last*/
}
NI void *made_last(size_t n) {
	return malloc(n); /*made-last*/
}
NI void null_first(void *p, void *nothing) {
	free(nothing);
	(free)(p);
	END;
}
NI void no_memory_first(void *p, void *kept) {
	if (hide(malloc(huge)) || hide(calloc(1, huge)) || hide(realloc(kept, huge)) || hide(aligned_alloc(64, huge)))
		abort();
	(free)(p);
	(free)(kept);
	END;
}
int main(void)
{
	static void *leaked[4];
	int i;
	for (i = 0; i < nr_times; i++) {
		last(new_int());
		last_of_two(new_int(), new_int());
		null_first(new_int(), NULL);
		no_memory_first(new_int(), malloc(10)); /*kept*/
		leaked[2 * i] = copied_last("text");
		leaked[2 * i + 1] = made_last(5);
	}
	return !leaked[3];
}
'''
C_HINTED = ['last', 'last-before', 'last-two']
# the sites in files with macros that must be named, and nothing else may be given a line by a macro
HINTED = ['inner', 'nested', 'nested-other', 'inner-virtual', 'deep-middle', 'deep-outer', 'inner-none', 'outer-only',
          'after-nothing', 'after-throw', 'after-jump', 'comma-a', 'comma-c', 'condition', 'members', 'arguments',
          'strdup', 'realloc', 'free', 'realloc-new']


def lines_of(text):
    return {mark: nr for nr, line in enumerate(text.split('\n'), 1) for mark in re.findall(r'/\*([a-z-]+)\*/', line)}


def of_c(cc, cxx, level):
    """C's sites are taken back by nobody: those of calls that came to nothing, or were a function's last act."""
    lines, mark = lines_of(C_SOURCE), f'{cc}{level}'
    made = build(f'{mark}.o', cc, '-g', level, '-w', '-DLEAKWATCH', f'-I{HEADERS}', '-c', write(f'{mark}.c', C_SOURCE))
    program = made and build(f'{mark}-c', cxx, made, 'new.cc')
    if not program:
        return
    run = Run(program)
    got = {(e.get('hint', {}).get('line'), e['count']) for _, _, e in run.events()}
    expected = {(lines[m], 2) for m in C_HINTED}
    check(f'{cc} {level}: releases that are a function\'s last act name their own line',
          expected <= got, got, *run.texts())
    check(f'{cc} {level}: what follows a call that came to nothing is given no line', got - expected == {(None, 2)}, got)
    leaked = {(s.get('hint', {}).get('line'), s['blocks']) for s in run.report.get('sites', []) if s['verdict'] != 'runtime'}
    check(f'{cc} {level}: so do allocations', leaked == {(lines['copied-last'], 2), (lines['made-last'], 2)}, leaked)


def main():
    write('shared.h', SHARED)
    other, source, lines = write('other.cc', OTHER), write('main.cc', MAIN), lines_of(MAIN)
    write('new.cc', 'extern "C" void *new_int() { return new int; }\n')
    for cc, cxx in PAIRS:
        for level in LEVELS:
            for fixed in [], ['-fno-pic', '-no-pie']:
                program = build('orders', cxx, '-std=c++17', '-g', level, *fixed, '-w', '-DLEAKWATCH', f'-I{HEADERS}',
                                source, other)
                if not program:
                    continue
                name = ' '.join([cxx, level, *fixed])
                run = Run(program)
                got = {e['hint']['line'] for _, _, e in run.events() if e.get('hint')}
                missing = [m for m in HINTED if lines[m] not in got]
                extra = got - {lines[m] for m in HINTED}
                check(f'{name}: {len(HINTED)} releases name their own line', not missing, missing, *run.texts())
                check(f'{name}: no release is given the line of another', not extra, extra, *run.texts())
                # each release in the file without macros has no line of a macro
                elsewhere = [e for _, _, e in run.events() if 'hint' not in e]
                check(f'{name}: 7 releases in the file without macros have none', sum(e['count'] for e in elsewhere) == 7,
                      *run.texts())
        each(of_c, [(cc, cxx, level) for level in LEVELS])
    done()


main()
