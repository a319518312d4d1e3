#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every allocation with every release: exactly the wrong pairs are reported, as what they are, at their lines.

usage: pairs.py BUILD-FOLDER. One program is generated that has each pair in a function of its own, and built by
each compiler at -O0 and -O2, as it is and with the header's macros."""
from common import HEADERS, LEVELS, PAIRS, Run, build, check, done, write

# name -> (expression that allocates `bytes` bytes of type char, family, alignment, size)
ALLOCS = {
    'malloc': ('malloc(48)', 'malloc', 0, 48),
    'calloc': ('calloc(4, 12)', 'malloc', 0, 48),
    'realloc': ('realloc(hide((void *)malloc(3)), 48)', 'malloc', 0, 48),
    'aligned_alloc': ('aligned_alloc(64, 128)', 'malloc', 64, 128),
    'posix_memalign': ('aligned(64, 48)', 'malloc', 0, 48),
    'strdup': ('strdup("0123456789")', 'malloc', 0, 11),
    'new': ('NEW Object', 'new', 0, 48),
    'new nothrow': ('NEW (std::nothrow) Object', 'new', 0, 48),
    'operator new': ('::operator new(48)', 'new', 0, 48),
    'new aligned': ('NEW Wide', 'new', 64, 64),
    'new[]': ('NEW Object[2]', 'new[]', 0, 96),
    'new[] nothrow': ('NEW (std::nothrow) char[48]', 'new[]', 0, 48),
    'new[] aligned': ('NEW Wide[2]', 'new[]', 64, 128),
}
# name -> (statement, family, alignment or None: not told, size or None: not told)
RELEASES = {
    'free': ('free(p)', 'malloc', None, None),
    'realloc': ('keep(realloc(p, 200))', 'malloc', None, None),
    'free_sized': ('free_sized(p, 48)', 'malloc', None, 48),
    'free_sized of 128': ('free_sized(p, 128)', 'malloc', None, 128),
    'free_aligned_sized': ('free_aligned_sized(p, 64, 128)', 'malloc', 64, 128),
    'free_aligned_sized of 32': ('free_aligned_sized(p, 32, 128)', 'malloc', 32, 128),
    'free_aligned_sized of 48': ('free_aligned_sized(p, 64, 48)', 'malloc', 64, 48),
    'delete': ('DELETE (Object *)p', 'new', None, 48),
    'delete void': ('::operator delete(p)', 'new', None, None),
    'delete nothrow': ('::operator delete(p, std::nothrow)', 'new', None, None),
    'delete sized': ('::operator delete(p, (std::size_t)96)', 'new', None, 96),
    'delete aligned': ('::operator delete(p, std::align_val_t(64))', 'new', 64, None),
    'delete aligned 32': ('::operator delete(p, std::align_val_t(32))', 'new', 32, None),
    'delete Wide': ('DELETE (Wide *)p', 'new', 64, 64),
    'delete[]': ('DELETE[] (char *)p', 'new[]', None, None),
    'delete[] sized': ('::operator delete[](p, (std::size_t)96)', 'new[]', None, 96),
    'delete[] aligned': ('::operator delete[](p, std::align_val_t(64))', 'new[]', 64, None),
}
HEAD = '''#include <cstdlib>
#include <cstring>
#include <new>
#include "leakwatch.h"
#ifdef LEAKWATCH
#define NEW LEAKWATCH_NEW
#define DELETE LEAKWATCH_DELETE
#else
#define NEW new
#define DELETE delete
#endif
/* C23's, that this libc may lack: in the library they are always */
extern "C" __attribute__((weak)) void free_sized(void *p, std::size_t n);
extern "C" __attribute__((weak)) void free_aligned_sized(void *p, std::size_t a, std::size_t n);
struct Object { char c[48]; };
struct alignas(64) Wide { char c[64]; };
template <class T> static T *hide(T *p) { __asm__ volatile("" : "+r"(p) : : "memory"); return p; }
static void keep(void *p) { free(hide(p)); }
static void *aligned(std::size_t a, std::size_t n) { void *p; return posix_memalign(&p, a, n) ? nullptr : p; }
'''


def verdict(alloc, release):
    """What a release is to be called; None: it is right."""
    _, family, align, size = ALLOCS[alloc]
    _, release_family, release_align, release_size = RELEASES[release]
    if family != release_family:
        return 'mismatch'
    told_all = family != 'malloc' or release_size is not None # free() takes what aligned_alloc() gave
    if told_all and (release_align or 0) != align:
        return 'alignment-mismatch'
    if release_size is not None and release_size != size:
        return 'size-mismatch'
    return None


def generate():
    lines, expected, calls = HEAD.split('\n'), {}, []
    for a in ALLOCS:
        for r in RELEASES:
            name = f'pair_{len(calls)}'
            calls.append(name)
            lines.append(f'__attribute__((noinline, no_icf)) static void {name}() {{ // {a}, {r}')
            lines.append(f'\tvoid *p = hide((void *)({ALLOCS[a][0]}));')
            lines.append(f'\t{RELEASES[r][0]};')
            if verdict(a, r):
                expected[len(lines)] = (verdict(a, r), a, r)
            lines.append('\t__asm__ volatile("");')
            lines.append('}')
    lines.append('static volatile int nr_times = 2; // so that no loop is unrolled')
    lines.append('int main() {')
    lines += [f'\tfor (int i = 0; i < nr_times; i++) {name}();' for name in calls]
    lines.append('}')
    return '\n'.join(lines) + '\n', expected


def judge(name, run, expected, has_hints):
    seen = {}
    for what, line, event in run.events():
        seen.setdefault(line, []).append((what, event))
    missing = [f'{line}: {e}' for line, e in expected.items() if [w for w, _ in seen.get(line, [])] != [e[0]]]
    extra = [f'{line}: {[w for w, _ in e]}' for line, e in seen.items() if line not in expected]
    check(f'{name}: {len(expected)} wrong pairs are named as what they are', not missing and run.report,
          *missing, *run.texts())
    check(f'{name}: no other is', not extra, *extra)
    counts = {e['count'] for events in seen.values() for _, e in events}
    check(f'{name}: each was seen twice', counts == {2}, counts)
    check(f'{name}: both stacks are there', all('alloc_frames' in e and 'free_frames' in e
          for events in seen.values() for _, e in events))
    told = run.err.count(': wrong release\n') # all of them may take six seconds, which are over soon on a busy machine
    check(f'{name}: some were told at once, twenty at most', 0 < told <= 20, told)
    check(f'{name}: nothing was dropped', not run.report.get('dropped'), run.report.get('dropped'))
    if not has_hints:
        return
    hinted = [line for line, (_, _, r) in expected.items() if 'operator' not in RELEASES[r][0] and 'sized(' not in
              RELEASES[r][0]]
    wrong = [f'{line}: {e.get("hint")}' for line in hinted for _, e in seen.get(line, [])
             if e.get('hint', {}).get('line') != line]
    check(f'{name}: {len(hinted)} macro sites name their own line', not wrong, *wrong)
    wrong = [f'{line}: {e.get("alloc_hint")}' for line, (_, a, _) in expected.items() for _, e in seen.get(line, [])
             if 'operator' not in ALLOCS[a][0] and 'aligned(' not in ALLOCS[a][0]
             and e.get('alloc_hint', {}).get('line') != line - 1]
    check(f'{name}: so do the allocations', not wrong, *wrong)


def main():
    text, expected = generate()
    source = write('pairs.cc', text)
    for _, cxx in PAIRS:
        for level in LEVELS:
            for macros in [], ['-DLEAKWATCH']:
                program = build('pairs', cxx, '-std=c++17', '-fsized-deallocation', '-g', level, '-w', *macros,
                                f'-I{HEADERS}', source)
                if program:
                    judge(' '.join([cxx, level, *macros]), Run(program), expected, bool(macros))
    done()


main()
