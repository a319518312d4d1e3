#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""leakwatch.h in every standard, by every compiler and linker there is: compiles without a warning, links without
the library, runs the same without, with, and with the library; the API does what it says; figure by figure.

usage: header.py BUILD-FOLDER"""
import os
import re
import shutil
import subprocess

from common import ENV, HEADERS, LIBRARY, PAIRS, Run, build, check, done, each, skip, work, write

C_SOURCE = '''#include <stdio.h>
#include "leakwatch.h"
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
struct table { void *(*malloc)(size_t n); void (*free)(void *p); };
static int nr_evaluated;
static size_t once(size_t n) { nr_evaluated++; return n; }
static void *nothing(size_t n) { (void)n; return NULL; }
static void nobody(void *p) { (void)p; }
int main(void)
{
	struct table table = { nothing, nobody };
	void *(*pointer)(size_t) = malloc, *out = NULL;
	char *p = (char *)malloc(once(10)), *q = (char *)calloc(once(2), once(3));
	if (!p || !q || posix_memalign(&out, 64, once(100)))
		return 1;
	p = (char *)realloc(p, once(20));
	q = (char *)realloc(NULL == q ? NULL : q, 30);
	table.free(table.malloc(3));
	free((pointer)(5));
	free((malloc)(6));
	free(strdup("text"));
	if (p)
		free(p);
	else
		abort();
	free(q);
	free(out);
	out = NULL;
	free(out);
	printf("%d %d\\n", nr_evaluated, leakwatch_enabled());
	leakwatch_mark("unit");
	leakwatch_ignore(NULL);
	leakwatch_pause();
	leakwatch_resume();
	return leakwatch_unfreed_since(leakwatch_checkpoint(), NULL) != 0;
}
'''
CXX_SOURCE = '''#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>
#include "leakwatch.h"
static int nr_own;
struct Own {
	long n;
	Own() : n(1) {}
	static void *operator new(std::size_t n) { nr_own++; return ::operator new(n); }
	static void operator delete(void *p) { nr_own++; ::operator delete(p); }
};
struct Base { virtual ~Base() {} };
#if __cplusplus >= 201103L
struct NoCopy { NoCopy() = default; NoCopy(const NoCopy &) = delete; };
#endif
#include "leakwatch_on.h"
struct Derived : Base {
	int *p;
	Derived(int *given = new int(7)) : p(given) {}
	~Derived() { delete p; }
private:
	Derived(const Derived &);
};
#if __cplusplus >= 201103L
struct Member { int *p = new int[3]{1, 2, 3}; ~Member() { delete[] p; } };
#endif
#if __cplusplus >= 202002L
constexpr int squared(int n) { int *p = new int(n); int m = *p * *p; delete p; return m; }
static_assert(squared(4) == 16);
#endif
template <class T> T *make() { return new T(); }
template <class T> void unmake(T *p) { p ? delete p : (void)0; }
static int *kept = new int(1);
int main()
{
	char room[64];
	int *a = new int, *b = new (std::nothrow) int[4], *c = new (room) int(3), **d = new int *[3];
	Base *base = new Derived, *other = static_cast<Base *>(new Derived(new int(8)));
	Own *own = new Own;
	std::string *s = make<std::string>();
	int n = *new (room) int(5) + (*c == 5), *e = n ? new int(*c) : 0;
	delete a, delete[] b; delete[] d;
	n ? delete base : delete other;
	if (n) delete other; else delete base;
	delete own;
	unmake(s);
	delete e;
	delete kept;
	for (Own *o = new Own; o; o = 0) delete o;
#if __cplusplus >= 201103L
	{ std::unique_ptr<std::string> u(new std::string(40, 'u')); std::shared_ptr<Member> m(new Member);
	  auto f = [] { return new int(1); }; delete f(); auto *x = new auto(3); delete x; }
#endif
	{ std::vector<std::string> v(3, std::string(40, 'v')); std::list<int> l(3, 1); std::map<int, int> m; m[1] = 2; }
#include "leakwatch_off.h"
	std::printf("%d %d %d\\n", n, nr_own, leakwatch_enabled());
#include "leakwatch_on.h"
	delete (new Base);
#include "leakwatch_off.h"
	return 0;
}
'''
API_SOURCE = '''#include <stdio.h>
#include <stdlib.h>
#include "leakwatch.h"
static void *volatile kept[200]; /* else clang leaves allocations out */
int main(void)
{
	size_t blocks = 9;
	void *old = malloc(1000), *quiet;
	int is_set = setvbuf(stdout, NULL, _IONBF, 0);
	unsigned long moment = leakwatch_checkpoint(), later;
	size_t bytes;
	int i;
#define SINCE(moment) (bytes = leakwatch_unfreed_since(moment, &blocks), printf("%zu %zu\\n", bytes, blocks))
	SINCE(moment);
	kept[0] = malloc(10); kept[1] = malloc(20);
	free(malloc(500));
	later = leakwatch_checkpoint();
	kept[2] = malloc(300000);
	SINCE(moment);
	free(kept[1]); free(old);
	SINCE(moment);
	SINCE(later);
	leakwatch_ignore(kept[0]); leakwatch_ignore(kept[2]); leakwatch_ignore(&blocks);
	SINCE(moment);
	free(kept[2]);
	leakwatch_pause(); leakwatch_pause(); leakwatch_resume();
	quiet = malloc(77);
	leakwatch_resume();
	for (i = 3; i < 103; i++) { kept[3] = malloc(24); leakwatch_mark("request"); }
	leakwatch_mark("once");
	if (leakwatch_scan_now(&bytes, &blocks)) printf("lost %d\\n", bytes >= 97 * 24 && bytes <= 100 * 24 && bytes == blocks * 24);
	leakwatch_report_now();
	(void)quiet; (void)is_set;
	puts("end");
	return 0;
}
'''
C_STANDARDS = ['c99', 'c11', 'c17', 'c2x', 'gnu99', 'gnu17']
CXX_STANDARDS = ['c++98', 'c++11', 'c++14', 'c++17', 'c++20', 'c++2b', 'gnu++17']
STRICT = ['-Wall', '-Wextra', '-Wpedantic', '-Werror']
CODE = [['-fPIE', '-pie'], ['-fno-pic', '-no-pie'], ['-fPIC', '-pie'], ['-static'], ['-fPIE', '-static-pie']]
LINKERS = ['bfd', 'gold', 'lld']


def alone(program):
    ran = subprocess.run([program], env=ENV, capture_output=True, text=True, timeout=20, check=False)
    return ran.returncode, ran.stdout


def installed():
    return [linker for linker in LINKERS if shutil.which(f'ld.{linker}')]


def one_standard(compiler, standard, source, expected):
    """Compiled once, linked by each linker. Inert: the compiler's word; that the code is the same: is_inert()."""
    name, mark = f'{compiler} -std={standard}', f'{compiler}-{standard}'
    base = [compiler, f'-std={standard}', *STRICT, '-D_GNU_SOURCE', f'-I{HEADERS}']
    build(f'{mark}-inert', *base, '-O1', '-fsyntax-only', source)
    active = build(f'{mark}.o', *base, '-O2', '-DLEAKWATCH', '-c', source)
    if not active:
        return
    for linker in installed():
        program = build(f'{mark}-{linker}', compiler, f'-fuse-ld={linker}', active)
        check(f'{name} {linker}: without warnings, links and runs without the library',
              program and alone(program) == (0, expected + '0\n'), program and alone(program))
    run = Run(program)
    check(f'{name}: the same with it, and nothing is reported',
          (run.status, run.out) == (0, expected + '1\n') and not run.events(), run.status, run.out, *run.texts())


def one_level(compiler, standard, source, expected):
    """Not optimised: other warnings, other code. And as it is without -DLEAKWATCH."""
    for name, flags, seen in ('active', ['-DLEAKWATCH'], '1\n'), ('inert', [], '0\n'):
        program = build(f'{compiler}-{standard}-{name}-O0', compiler, f'-std={standard}', '-O0', *STRICT, '-D_GNU_SOURCE', *flags,
                        f'-I{HEADERS}', source)
        if not program:
            continue
        run = Run(program)
        check(f'{compiler} -std={standard} -O0, {name}: without warnings, the same without and with the library',
              alone(program) == (0, expected + '0\n') and (run.status, run.out) == (0, expected + seen)
              and not run.events(), alone(program), run.status, run.out, *run.texts())


def one_code_model(compiler, code, source, expected):
    compile_flag = [flag for flag in code if flag.startswith('-f')]
    mark = f'{compiler}{"".join(code)}'
    made = build(f'{mark}.o', compiler, '-O2', *compile_flag, '-w', '-DLEAKWATCH', '-D_GNU_SOURCE', f'-I{HEADERS}', '-c', source)
    for linker in installed() if made else []:
        if linker == 'gold' and '-static-pie' in code:
            continue # it has no --no-dynamic-linker
        program = build(f'{mark}-{linker}', compiler, *code, f'-fuse-ld={linker}', made)
        if not program:
            continue
        good = alone(program) == (0, expected + '0\n')
        if '-static' not in code and '-static-pie' not in code:
            run = Run(program)
            good = good and (run.status, run.out) == (0, expected + '1\n')
        check(f'{compiler} {linker} {" ".join(code)}: links and runs without the library, and finds it', good,
              alone(program))


def is_inert(compiler, source, name):
    """The object made without LEAKWATCH is the one made with an empty header."""
    empty = os.path.join(work, f'{compiler}-empty')
    os.makedirs(empty, exist_ok=True)
    text = '#pragma once\n' + ''.join(f'#include <{h}>\n' for h in ('stdlib.h', 'malloc.h', 'string.h', 'stddef.h'))
    if name.endswith('.cc'):
        text += '#include <new>\n'
    write(f'{compiler}-empty/leakwatch.h', text)
    objects = []
    for folder in HEADERS, empty:
        out = build(f'{compiler}-inert.s', compiler, '-O2', '-S', '-w', f'-I{folder}', source)
        if not out:
            return
        with open(out, encoding='utf-8') as file:
            objects.append(re.sub(r'\.L[A-Z]+\d+', '.L', file.read())) # the numbers of labels differ
    check(f'{compiler}: without LEAKWATCH the code is what it would be without the header', objects[0] == objects[1])


def errors(compiler):
    """What no macro survives is an error, not another meaning."""
    for what in ('struct S { S(const S &) = delete; };', 'void *operator new(unsigned long, char);',
                 'void operator delete(void *, char);', 'int *f() { return ::new int; }', 'void f(int *p) { ::delete p; }',
                 'void *f() { return (void *)new int; }'):
        source = write(f'{compiler}-error.cc', f'#include "leakwatch.h"\n#include "leakwatch_on.h"\n{what}\n')
        ran = subprocess.run([compiler, '-std=c++17', '-fsyntax-only', '-DLEAKWATCH', f'-I{HEADERS}', source],
                             capture_output=True, text=True, check=False)
        check(f'{compiler}: {what} is an error at its line', ran.returncode and 'error.cc:3:' in ran.stderr, ran.stderr)


def api(compiler):
    source = write(f'{compiler}-api.c', API_SOURCE)
    program = build(f'{compiler}-api', compiler, '-g', '-O1', '-DLEAKWATCH', f'-I{HEADERS}', source)
    if not program:
        return
    check(f'{compiler}: the API without the library', alone(program) == (0, '0 0\n' * 5 + 'end\n'), alone(program))
    run = Run(program)
    check(f'{compiler}: checkpoints are exact', run.out == '0 0\n300030 3\n300010 2\n300000 1\n0 0\nlost 1\nend\n', run.out)
    marks = {m['name']: m for m in run.report.get('marks', [])}
    check(f'{compiler}: a leak of 24 bytes a mark', marks.get('request', {}).get('count') == 100
          and marks['request']['bytes_per_mark'] == 24 and marks['request']['blocks_per_mark'] == 1
          and marks['once']['count'] == 1, marks)
    leaked = {}  # by line: what the last pointer still holds has a verdict of its own
    for site in run.report['sites']:
        if site['verdict'] != 'runtime':
            leaked[site['hint']['line']] = leaked.get(site['hint']['line'], 0) + site['bytes']
    line = API_SOURCE.split('\n').index(next(l for l in API_SOURCE.split('\n') if '"request"' in l)) + 1
    check(f'{compiler}: ignored and paused blocks are no leak; what is one names its line', leaked == {line: 2400}, leaked)
    check(f'{compiler}: a report on request and one at the end', run.err.count('SUMMARY: LeakWatch: ') == 2
          and 'still running' in run.err and '+24.0 bytes and +1.00 blocks' in run.err, run.err)
    check(f'{compiler}: no error', not run.events() and not run.report.get('dropped'), *run.texts())


def main():
    c_source, cxx_source = write('use.c', C_SOURCE), write('use.cc', CXX_SOURCE)
    inert_c = write('inert.c', '#include "leakwatch.h"\nvoid *f(unsigned long n) { free(malloc(1)); return malloc(n); }\n')
    inert_cxx = write('inert.cc', '#include "leakwatch.h"\nint *f() { delete[] new char[3]; return new int(3); }\n')
    for linker in LINKERS:
        if linker not in installed():
            skip(f'linker {linker}', 'not installed')
    jobs = []
    for cc, cxx in PAIRS:
        jobs += [(one_standard, cxx, standard, cxx_source, '6 4 ') for standard in CXX_STANDARDS]
        jobs += [(one_level, cxx, standard, cxx_source, '6 4 ') for standard in ('c++98', 'c++20')]
        jobs += [(one_code_model, cxx, code, cxx_source, '6 4 ') for code in CODE]
        jobs += [(one_standard, cc, standard, c_source, '5 ') for standard in C_STANDARDS]
        jobs += [(one_level, cc, standard, c_source, '5 ') for standard in ('c99', 'c2x')]
        jobs += [(one_code_model, cc, code, c_source, '5 ') for code in CODE]
        jobs += [(is_inert, cc, inert_c, 'inert.c'), (is_inert, cxx, inert_cxx, 'inert.cc'), (errors, cxx), (api, cc)]
    each(lambda function, *arguments: function(*arguments), jobs)
    assert os.path.exists(LIBRARY)
    done()


main()
