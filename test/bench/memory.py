#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What LeakWatch takes of memory: for each byte of a heap, for each thread, and before there is any.

usage: memory.py BUILD-FOLDER [--check]
A program that holds some MiB of blocks of one size is run with the library and without. Of both the memory
is read that is theirs alone (Private_Dirty in /proc/PID/smaps_rollup; of the region in shared memory, too,
as long as nobody else has it mapped). The line through the differences has a slope, the price of a byte of
heap, and begins at what nothing costs. A byte of heap is one that the program itself takes more of without
us: what malloc adds to a small block is heap, too. Page tables are told apart, where they count. Then
programs of other shapes: many threads at once, one after the other, blocks far apart (crowd.c).
With --check it is a test of the limits below."""
import os
import subprocess
import sys

SIZES = 24, 32, 48, 64, 100, 256, 1024
MIB = 0, 8, 16, 32, 48
MOST_PER_BYTE, MOST_FIXED, MOST_PER_THREAD = 0.3, 3_000_000, 128 << 10
MOST_PER_FAR_BLOCK = 5_000  # a page of the table and a bit of what finds it


def private_bytes(pid):
    with open(f'/proc/{pid}/smaps_rollup') as file:
        return sum(int(line.split()[1]) for line in file if line.startswith('Private_Dirty')) * 1024


def page_table_bytes(pid):
    with open(f'/proc/{pid}/status') as file:
        return sum(int(line.split()[1]) for line in file if line.startswith('VmPTE')) * 1024


def measure(command, library, read=private_bytes):
    env = {'PATH': os.environ['PATH'], 'LC_ALL': 'C'}
    if library:
        env.update(LD_PRELOAD=library, LEAKWATCH_OPTIONS='report=never')
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        if process.stdout.readline() != b'ready\n':
            sys.exit(f'{command}: it did not begin')
        seen = read(process.pid)
        process.stdin.close()
    return seen


def line_through(xs, ys):
    """Slope and beginning of the straight line that fits best."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
    return slope, mean_y - slope * mean_x


def heaps(build, library, is_test):
    """Prints a line for each size of block; those that cost too much."""
    program, bad = build + '/test/bench/bench-heap', []
    sizes, amounts = (SIZES[:3] + SIZES[-1:], MIB[:4]) if is_test else (SIZES, MIB)
    print('# bytes a block | LeakWatch for a byte of heap | for a byte asked for | at no byte, MB | straight to')
    for size in sizes:
        alone = [measure([program, str(size), str(mib)], None) for mib in amounts]
        watched = [measure([program, str(size), str(mib)], library) for mib in amounts]
        more = [w - a for w, a in zip(watched, alone)]
        heap = [a - alone[0] for a in alone]
        slope, begin = line_through(heap, more)
        asked, _ = line_through([mib << 20 for mib in amounts], more)
        worst = max(abs(m - begin - slope * h) for m, h in zip(more, heap))
        print(f'# {size:14} | {slope:28.3f} | {asked:20.3f} | {begin / 1e6:14.2f} | {worst / 1e3:.0f} kB')
        if slope > MOST_PER_BYTE or begin > MOST_FIXED:
            bad.append(size)
    return bad


def more_of(build, library, shape, nr, read=private_bytes):
    command = [build + '/test/bench/bench-crowd', shape, str(nr)]
    pairs = [(measure(command, None, read), measure(command, library, read)) for _ in range(3)]
    return sorted(w - a for a, w in pairs)[1]


def crowds(build, library):
    """Prints a line for each shape; those that cost too much."""
    bad = []
    for shape, words in ('threads', 'allocated once'), ('busy', 'allocated by 256 stacks'):
        few, many = more_of(build, library, shape, 1), more_of(build, library, shape, 201)
        print(f'# a thread that {words}: {(many - few) / 200 / 1024:.1f} KiB')
        if (many - few) / 200 > MOST_PER_THREAD:
            bad.append(shape)
    passing = more_of(build, library, 'passing', 10000)
    print(f'# 10,000 threads that came and went: {passing / 1e6:.2f} MB in all')
    if passing > MOST_FIXED:
        bad.append('passing')
    far = (more_of(build, library, 'sparse', 1024) - more_of(build, library, 'sparse', 0)) / 1024
    tables = (more_of(build, library, 'sparse', 1024, page_table_bytes) - more_of(build, library, 'sparse', 0, page_table_bytes)) / 1024
    print(f'# blocks 1 GiB apart, over 1 TiB: {far:.0f} bytes a block, and {tables:.0f} of page tables')
    if far > MOST_PER_FAR_BLOCK:
        bad.append('sparse')
    return bad


def main():
    build, is_test = sys.argv[1], '--check' in sys.argv
    program, library = build + '/test/bench/bench-heap', build + '/preload/libleakwatch.so'
    nothing = [measure([program, '32', '0'], library) - measure([program, '32', '0'], None) for _ in range(3)]
    fixed = sorted(nothing)[1]
    print(f'# a program that holds nothing: {fixed / 1e6:.2f} MB more')
    bad_heaps, bad_crowds = heaps(build, library, is_test), crowds(build, library)
    if is_test:
        print('1..3')
        print(('not ok' if bad_heaps else 'ok') + f' 1 - at most {MOST_PER_BYTE} for a byte of heap {bad_heaps or ""}')
        print(('not ok' if fixed > MOST_FIXED else 'ok') + f' 2 - at most {MOST_FIXED / 1e6:.0f} MB before there is a heap')
        print(('not ok' if bad_crowds else 'ok') + f' 3 - at most 128 KiB a thread, nothing for those that left, a page a far block {bad_crowds or ""}')
    sys.exit(bool(is_test and (bad_heaps or bad_crowds or fixed > MOST_FIXED)))


main()
