#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wrong releases where it is awkward: in signal handlers, threads, children, after main, with nowhere to write, by the
second base, from more places than are kept. The program goes on as without us, and each is told with its line.

usage: hostile.py BUILD-FOLDER"""
import re

from common import HEADERS, PAIRS, Run, build, check, done, each, write

SOURCE = '''#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include "leakwatch.h"
#include "leakwatch_on.h"
template <class T> static T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
#define NI __attribute__((noinline))
static volatile int nr_signals;
static jmp_buf env;
struct Jumper { ~Jumper() { longjmp(env, 1); } };
struct First { virtual ~First() {} long a = 1; };
struct Second { virtual ~Second() {} long b = 2; };
struct Both : First, Second { long c = 3; ~Both() {} };
NI static void handler(int) {
	nr_signals++;
	delete hide((int *)malloc(4)); /*signal*/
	delete hide(new int);
}
NI static void signals() {
	itimerval often = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, nullptr);
	while (nr_signals < 50) { delete hide(new int); free(hide(malloc(10))); int *p = hide(new int[3]); delete[] p; }
	setitimer(ITIMER_REAL, &off, nullptr);
}
NI static void threads() {
	std::vector<std::thread> all;
	for (int i = 0; i < 8; i++)
		all.emplace_back([] { for (int i = 0; i < 100; i++)
			delete hide((int *)malloc(4)); /*threads*/
		});
	for (auto &t : all) t.join();
}
NI static void child(bool is_vfork) {
	pid_t pid = is_vfork ? vfork() : fork();
	if (!pid) {
		delete hide((int *)malloc(4)); /*child*/
		_exit(0);
	}
	waitpid(pid, nullptr, 0);
	delete hide((int *)malloc(4)); /*parent*/
}
NI static void jump_out() { delete hide(new Jumper); }
NI static void jumps() {
	for (int i = 0; i < 200; i++) { if (!setjmp(env)) jump_out(); free(hide(malloc(3))); delete hide(new int); }
	delete hide((int *)malloc(4)); /*jumps*/
}
NI static void after_main() {
	delete hide((int *)malloc(4)); /*exit*/
}
NI static void aligned() {
#include "leakwatch_off.h"
	void *p = ::operator new(100, std::align_val_t(1 << 20));
	::operator delete(hide(p)); /*aligned*/
	p = ::operator new(10, std::align_val_t(1ul << 40), std::nothrow);
	::operator delete(p, std::align_val_t(1ul << 40));
	try { p = ::operator new(10, std::align_val_t(3)); } catch (std::bad_alloc &) { puts("refused"); }
#include "leakwatch_on.h"
}
NI static void bases() {
	Second *one = new Both; delete hide(one);
	First *array = new Both[2]; delete hide(array); /*bases*/
}
NI static void deep(int n, int way) {
	if (!n)
		delete hide((int *)malloc(8)); /*deep*/
	else if (way & 1)
		deep(n - 1, way >> 1);
	else
		(deep)(n - 1, way >> 1), (void)hide(&n);
}
int main(int, char **argv) {
	const char *what = argv[1];
	setvbuf(stdout, nullptr, _IONBF, 0);
#define IS(name) (!strcmp(what, name))
	if (IS("signal")) signals();
	if (IS("threads")) threads();
	if (IS("fork") || IS("vfork")) child(IS("vfork"));
	if (IS("jumps")) jumps();
	if (IS("exit")) atexit(after_main);
	if (IS("closed")) close(2);
	if (IS("full")) dup2(open("/dev/full", O_WRONLY), 2);
	if (IS("closed") || IS("full")) after_main();
	if (IS("aligned")) aligned();
	if (IS("bases")) bases();
	if (IS("deep")) for (int i = 0; i < 20000; i++) deep(16, i);
	puts("alive");
}
'''
# what -> {(line's name, how often)}, is it told on stderr?
EXPECTED = {
    'signal': ({'signal': None}, True), # in a hook it is not seen
    'threads': ({'threads': 800}, True),
    'fork': ({'parent': 1}, True),
    'vfork': ({'child': 1, 'parent': 1}, True), # a child that borrows our memory
    'jumps': ({'jumps': 1}, True),
    'exit': ({'exit': 1}, True),
    'closed': ({'exit': 1}, False),
    'full': ({'exit': 1}, False),
    'aligned': ({'aligned': 1}, True),
}


def one_compiler(cxx, level):
    source = write(f'{cxx}{level}-hostile.cc', SOURCE)
    lines = {mark: nr for nr, line in enumerate(SOURCE.split('\n'), 1) for mark in re.findall(r'/\*([a-z]+)\*/', line)}
    program = build(f'{cxx}{level}-hostile', cxx, '-std=c++17', '-g', level, '-w', '-pthread', '-DLEAKWATCH',
                    f'-I{HEADERS}', source)
    if not program:
        return
    for what, (expected, is_told) in EXPECTED.items():
        run = Run(program, what)
        counts = {}
        for _, line, event in run.events():
            counts[line] = counts.get(line, 0) + event['count']
        good = set(counts) == {lines[m] for m in expected} and all(
            n is None or counts[lines[m]] == n for m, n in expected.items())
        check(f'{cxx} {level} {what}: ends as alone, and exactly that is reported',
              (run.status, run.out.split()[-1:]) == (0, ['alive']) and good, run.status, run.out, counts, *run.texts())
        hints = {event['hint']['line'] for _, line, event in run.events() if event.get('hint')}
        check(f'{cxx} {level} {what}: no line but its own', hints <= {lines[m] for m in expected}, hints)
        check(f'{cxx} {level} {what}: {"told at once" if is_told else "nowhere to tell it"}',
              (': wrong release' in run.err) == is_told, run.err)
    run = Run(program, 'bases') # the array by its first base: undefined, and it dies
    check(f'{cxx} {level} bases: an array released by its base, behind its count',
          'new[] was released by delete' in run.err and f':{lines["bases"]}:\n' in run.err, run.status, run.err)
    run = Run(program, 'deep', options='report=never')
    kept = sum(event['count'] for _, _, event in run.events())
    lost = run.report.get('dropped', {}).get('events', 0)
    check(f'{cxx} {level} deep: 20000 from many places are kept, or counted as not kept',
          run.status == 0 and kept + lost == 20000 and kept > 0, run.status, kept, lost)


each(one_compiler, [(PAIRS[0][1], '-O1'), (PAIRS[-1][1], '-O2')])
done()
