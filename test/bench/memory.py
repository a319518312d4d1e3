#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What LeakWatch takes of memory: for each byte of a heap, and before there is any.

usage: memory.py BUILD-FOLDER [--check]
A program that holds some MiB of blocks of one size is run with the library and without. Of both the memory
is read that is theirs alone (Private_Dirty in /proc/PID/smaps_rollup; of the region in shared memory, too,
as long as nobody else has it mapped). The line through the differences has a slope, the price of a byte of
heap, and begins at what nothing costs. A byte of heap is one that the program itself takes more of without
us: what malloc adds to a small block is heap, too. With --check it is a test: 0.55 for each byte of heap
in blocks of 24 to 48 bytes, and 3 MB."""
import os
import subprocess
import sys

SIZES = 24, 32, 48, 64, 100, 256, 1024
MIB = 0, 8, 16, 32, 48
MOST_PER_BYTE, MOST_FIXED = 0.55, 3_000_000


def private_bytes(pid):
    with open(f'/proc/{pid}/smaps_rollup') as file:
        return sum(int(line.split()[1]) for line in file if line.startswith('Private_Dirty')) * 1024


def measure(command, library):
    env = {'PATH': os.environ['PATH'], 'LC_ALL': 'C'}
    if library:
        env.update(LD_PRELOAD=library, LEAKWATCH_OPTIONS='report=never')
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        if process.stdout.readline() != b'ready\n':
            sys.exit(f'{command}: it did not begin')
        seen = private_bytes(process.pid)
        process.stdin.close()
    return seen


def line_through(xs, ys):
    """Slope and beginning of the straight line that fits best."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
    return slope, mean_y - slope * mean_x


def main():
    build, is_test = sys.argv[1], '--check' in sys.argv
    program, library = build + '/test/bench/bench-heap', build + '/preload/libleakwatch.so'
    sizes, amounts = (SIZES[:3] + SIZES[-1:], MIB[:4]) if is_test else (SIZES, MIB)
    nothing = [measure([program, '32', '0'], library) - measure([program, '32', '0'], None) for _ in range(3)]
    fixed = sorted(nothing)[1]
    bad = []
    print(f'# a program that holds nothing: {fixed / 1e6:.2f} MB more')
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
    if is_test:
        print('1..2')
        print(('not ok' if bad else 'ok') + f' 1 - at most {MOST_PER_BYTE} for a byte of heap {bad or ""}')
        print(('not ok' if fixed > MOST_FIXED else 'ok') + f' 2 - at most {MOST_FIXED / 1e6:.0f} MB before there is a heap')
    sys.exit(bool(is_test and (bad or fixed > MOST_FIXED)))


main()
