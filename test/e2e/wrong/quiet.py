#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is right is not reported: operators a program or a library defines itself, in every combination, classes'
own, placement, containers, memory that one module allocates and another frees.

usage: quiet.py BUILD-FOLDER. Each program must end as it does alone, without a mismatch or an error, with nothing on
stderr; the counts that a program's own operators keep show that they are called as often as alone."""
import os
import subprocess

from common import ENV, LEVELS, LIBRARY, PAIRS, Run, build, check, done, each, work, write

NEW = '''void *operator new(std::size_t n) { nr_new++; void *p = malloc(n ? n : 1); if (!p) throw std::bad_alloc(); return p; }
'''
DELETE = '''void operator delete(void *p) noexcept { nr_delete += !!p; free(p); }
'''
# with a header of its own in front of each block
OFFSET = '''void *operator new(std::size_t n) {
	nr_new++; char *p = (char *)malloc(n + 32); if (!p) throw std::bad_alloc(); *(std::size_t *)p = n; return p + 32;
}
void operator delete(void *p) noexcept { if (p) { nr_delete++; free((char *)p - 32); } }
'''
ARRAYS = '''void *operator new[](std::size_t n) { nr_new++; void *p = malloc(n ? n : 1); if (!p) throw std::bad_alloc(); return p; }
void operator delete[](void *p) noexcept { nr_delete += !!p; free(p); }
'''
HELPED = '''__attribute__((noinline)) static void *take(std::size_t n) { nr_new++; return malloc(n ? n : 1); }
void *operator new(std::size_t n) { void *p = take(n); __asm__ volatile("" : "+r"(p)); return p; }
'''
SIZED = '''void operator delete(void *p, std::size_t) noexcept { nr_delete += !!p; free(p); }
'''
OPERATORS = {'new': NEW, 'delete': DELETE, 'new and delete': NEW + DELETE, 'arrays': ARRAYS, 'with a header': OFFSET,
             'new with a helper': HELPED, 'sized delete': SIZED}
COUNTS = '''#include "standard.h"
int nr_new, nr_delete;
'''
STANDARD = '''#pragma once
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>
'''
USE = '''#include "standard.h"
extern int nr_new, nr_delete;
template <class T> static T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
struct Base { virtual ~Base() {} int a = 1; };
struct Derived : Base { std::string s = std::string(60, 'd'); };
struct alignas(128) Wide { char c[128]; };
struct Counted { ~Counted() { __asm__ volatile(""); } int n = 0; };
int main() {
	delete hide(new int);
	delete[] hide(new int[4]);
	delete[] hide(new Counted[4]);
	delete hide((Base *)new Derived);
	delete hide(new (std::nothrow) int);
	delete[] hide(new (std::nothrow) Counted[2]);
	delete hide(new Wide);
	delete[] hide(new Wide[2]);
	std::vector<std::string> v(20, std::string(40, 'v'));
	std::map<int, std::unique_ptr<Derived>> m;
	for (int i = 0; i < 10; i++)
		m[i].reset(new Derived);
	std::list<std::shared_ptr<int>> l{std::make_shared<int>(1), std::shared_ptr<int>(new int(2))};
	printf("new %d delete %d\\n", nr_new, nr_delete);
}
'''
# pairs that look odd and are right
ODD = '''#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
template <class T> static T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
struct ByMalloc {
	long a[4];
	static void *operator new(std::size_t n) { return malloc(n); }
	static void operator delete(void *p) { free(p); }
	static void *operator new[](std::size_t n) { return malloc(n); }
	static void operator delete[](void *p) { free(p); }
};
struct ByGlobal {
	long a[4];
	__attribute__((noinline)) static void *operator new(std::size_t n) { return ::operator new(n); }
	static void operator delete(void *p) { ::operator delete(p); } // inlined, the other not
};
struct InPool {
	long a[4];
	static char pool[4][32];
	static int used;
	static void *operator new(std::size_t) { return pool[used++ & 3]; }
	static void operator delete(void *) {}
};
char InPool::pool[4][32];
int InPool::used;
struct Tail { // storage behind the object, given back by its own size
	std::size_t n;
	static void *operator new(std::size_t n, std::size_t more) { return ::operator new(n + more); }
	static void operator delete(void *p) { ::operator delete(p); }
};
struct Fussy { Fussy() { throw 1; } };
extern "C" void *lib_alloc(std::size_t n);
extern "C" void lib_free(void *p);
int main() {
	delete hide(new ByMalloc);
	delete[] hide(new ByMalloc[3]);
	delete hide(new ByGlobal);
	delete hide(new InPool);
	delete hide(new (100) Tail);
	try { (void)hide(new Fussy); } catch (int) {}
	try { (void)hide(new Fussy[3]); } catch (int) {}
	alignas(16) char room[sizeof(long)];
	(void)hide(new (room) long(1));
	free(hide(lib_alloc(30)));
	lib_free(hide(malloc(30)));
	lib_free(hide(strdup("text")));
	// the same address again and again, by other families
	for (int i = 0; i < 50; i++) {
		free(hide(malloc(40))); delete hide((new char)); delete[] hide(new char[40]);
		free(realloc(hide(malloc(1)), 40)); free(realloc(hide(malloc(400000)), 800000));
	}
	free(nullptr); delete hide((int *)nullptr); delete[] hide((int *)nullptr);
	puts("odd");
}
'''
MODULE = '''#include <cstdlib>
extern "C" void *lib_alloc(std::size_t n) { return malloc(n); }
extern "C" void lib_free(void *p) { free(p); }
'''
# an allocator behind us whose functions call each other by their exported names
NESTED = '''#include <stddef.h>
#include <string.h>
static char room[16 << 20] __attribute__((aligned(4096)));
static size_t used;
void *memalign(size_t align, size_t n)
{
	if (align < 16)
		align = 16;
	used = (used + align - 1) / align * align;
	used += n + !n;
	return used <= sizeof(room) ? room + used - n - !n : NULL;
}
void *malloc(size_t n) { return memalign(16, n); }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *old, size_t n) { void *p = malloc(n); return old && p ? memcpy(p, old, n) : p; }
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void **out, size_t align, size_t n) { *out = memalign(align, n); return *out ? 0 : 12; }
size_t malloc_usable_size(void *p) { (void)p; return 0; }
'''
USE_NESTED = '''#include <stdlib.h>
static void *volatile p;
int main(void)
{
	int i;
	for (i = 0; i < 100; i++) {
		void *got;
		if (posix_memalign(&got, 64, 100))
			return 1;
		free(got);
		p = calloc(3, 4);
		free(p);
		p = aligned_alloc(64, 128);
		free(p);
	}
	return 0;
}
'''
GNU = '-std=c++17'


def quiet(name, program):
    alone = subprocess.run([program], env=ENV, capture_output=True, text=True, check=False)
    run = Run(program)
    check(f'{name}: as alone, and nothing is reported',
          (run.status, run.out, run.err) == (alone.returncode, alone.stdout, alone.stderr) and run.report
          and not run.events(), f'{alone.returncode} {alone.stdout}{alone.stderr}', f'{run.status} {run.out}', *run.texts())
    leaked = [s for s in run.report.get('sites', []) if s['verdict'] != 'runtime']
    check(f'{name}: nothing is leaked', not leaked, leaked)


def one_level(cxx, level):
    """Objects are compiled once and linked in every way; the standard headers are compiled before."""
    base = [cxx, GNU, level, '-w', '-g', '-fsized-deallocation', '-fPIE']
    mark = f'{cxx}{level}'

    def make(source, *arguments):
        return build(f'{mark}-{source}{"".join(arguments)}.o', *base, *arguments, '-include', f'{mark}/standard.h', '-c',
                     source)

    os.mkdir(os.path.join(work, mark))
    write(f'{mark}/standard.h', STANDARD)
    build(f'{mark}/standard.h.gch', *base, '-x', 'c++-header', f'{mark}/standard.h')
    use, counts, odd = make('use.cc'), make('counts.cc'), make('odd.cc')
    operators = {which: make(f'ops-{which.replace(" ", "-")}.cc') for which in OPERATORS}
    pair = build(f'{mark}-libpair.so', *base, '-fPIC', '-shared', 'library.cc')

    def link(name, out, *parts):
        program = build(f'{mark}-{out}', cxx, *parts, '-Wl,-rpath,$ORIGIN')
        if program:
            quiet(f'{cxx} {level}: {name}', program)

    link('no operators', 'use', use, counts)
    link('its own libstdc++', 'static', use, counts, '-static-libstdc++')
    link('odd pairs', 'odd', odd, pair)
    for which, object_file in operators.items():
        dashed = which.replace(' ', '-')
        link(f'{which}, in the program', f'in-program-{dashed}', use, object_file)
        library = build(f'{mark}-lib{dashed}.so', *base, '-fPIC', '-shared', f'ops-{dashed}.cc')
        link(f'{which}, in a library', f'in-library-{dashed}', use, library)
        if level == '-O2':
            one = make(f'one-{dashed}.cc')
            link(f'{which}, in the same file', f'in-file-{dashed}', one)


def nested(compiler):
    library = build('libnested.so', compiler, '-O1', '-w', '-fno-builtin', '-fPIC', '-shared', write('nested.c', NESTED))
    program = build('use-nested', compiler, '-O0', '-w', write('use-nested.c', USE_NESTED))
    if not library or not program:
        return
    run = Run(program, env={'LD_PRELOAD': f'{LIBRARY} {library}'})
    summary = run.report.get('summary', {})
    check('an allocator whose functions call each other: each block counts once',
          run.status == 0 and (summary.get('total_allocs'), summary.get('total_frees')) == (300, 300)
          and not run.report.get('dropped'), run.status, summary, run.report.get('dropped'), *run.texts())


def main():
    write('standard.h', STANDARD)
    write('use.cc', USE), write('odd.cc', ODD)
    write('counts.cc', COUNTS), write('library.cc', MODULE)
    for which, text in OPERATORS.items():
        write(f'ops-{which.replace(" ", "-")}.cc', COUNTS + text)
        write(f'one-{which.replace(" ", "-")}.cc', COUNTS + OPERATORS[which] + USE)
    each(one_level, [(cxx, level) for _, cxx in PAIRS for level in LEVELS])
    nested(PAIRS[0][0])
    done()


main()
