#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a search for lost memory costs.

usage: scan.py BUILD-FOLDER [--total MEGABYTES]     (1024)
sweep   memory read per second and core, and the scanner's own memory, by the size of the blocks and how they hang together
pause   for which a program with that heap and 100 threads stands still, beside a fork of it
work    pairs of malloc and free while it is searched, beside as many before and after
exit    CPU time that the search adds to the end of a process with 1,000 blocks
A quiet machine, please. Each line ends with its limit."""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

THREADS = 100
SHAPES = {'list': 'a list of blocks', 'array': 'an array of pointers to shuffled blocks', 'tree': 'a tree of shuffled blocks',
          'shuffled-list': 'a list of shuffled blocks'}


def environment(build, options):
    return dict(os.environ, LD_PRELOAD=build + '/preload/libleakwatch.so', LEAKWATCH_OPTIONS=options)


def searched_at_exit(build, folder, total, block, shape):
    path = f'{folder}/{block}.json'
    subprocess.run([build + '/test/bench/bench-scan', str(total), str(block), '0', '0', shape], check=True,
                   env=environment(build, f'json={path}:report=never'))
    with open(path, encoding='utf-8') as file:
        return json.load(file)['scan']


def sweep(build, folder, total):
    for block, shape in [(64, shape) for shape in SHAPES] + [(256, 'list'), (4096, 'list')]:
        scans = [searched_at_exit(build, folder, total, block, shape) for _ in range(3)]
        speed = statistics.median(s['swept_bytes'] / s['cpu_s'] for s in scans) / 1e9
        room = max(s['used_bytes'] / s['blocks'] for s in scans)
        print(f'sweep, {SHAPES[shape]} of {block} bytes: {speed:.2f} GB a second and core (1); {room:.1f} bytes of the scanner'
              f' for each block (24)', flush=True)


def live(build, folder, total):
    """a searched program's pause in us, fork in us, and the share of work it got done meanwhile"""
    with subprocess.Popen([build + '/test/bench/bench-scan', str(total), '4096', str(THREADS), '12'], stdout=subprocess.PIPE,
                          text=True, env=environment(build, 'report=never')) as process:
        fork_us = float(process.stdout.readline().split()[1])
        time.sleep(1.5)
        began = time.monotonic()
        out = subprocess.run([build + '/snapshot/leakwatch-snapshot', '--leaks', '--json', str(process.pid)],
                             capture_output=True, text=True, check=False).stdout
        scan = json.loads(out)['scan']
        ended = began + (time.monotonic() - began)
        lines = [line.split() for line in process.stdout.read().splitlines()]
    marks = [(float(line[1]), int(line[2])) for line in lines if line[0] == 'pairs']

    def rate(begin, end):
        inside = [m for m in marks if begin <= m[0] <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    span = ended - began
    alone = (rate(began - 1, began) + rate(ended + 0.2, ended + 1.2)) / 2
    return scan['pause_s'] * 1e6, fork_us, rate(began, ended) / alone, span, scan['state']


def pause_and_work(build, folder, total):
    runs = [live(build, folder, total) for _ in range(3)]
    pause = statistics.median(r[0] for r in runs)
    fork = statistics.median(r[1] for r in runs)
    print(f'pause with {THREADS} threads: {pause / 1e3:.1f} ms; a fork takes {fork / 1e3:.1f} ms'
          f' ({(fork + 1000 + 50 * THREADS) / 1e3:.1f})')
    print(f'work during a search of {statistics.median(r[3] for r in runs):.1f} s: '
          f'{100 * statistics.median(r[2] for r in runs):.0f} % of what is done alone (80)', flush=True)


def cpu(build, scan):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([build + '/test/bench/bench-scan', '100000', '100', '0', '0'], check=True,
                   env=environment(build, f'scan={scan}:report=never'))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def end(build):
    pairs = [(cpu(build, 'never'), cpu(build, 'exit')) for _ in range(60)]
    print(f'exit with 1,000 blocks: {1e3 * statistics.median(b - a for a, b in pairs):+.2f} ms of CPU (2)')


def main():
    parser = argparse.ArgumentParser(description='see the head of this file')
    parser.add_argument('build')
    parser.add_argument('--total', type=int, default=1024)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    with tempfile.TemporaryDirectory(prefix='leakwatch-bench.') as folder:
        end(build)
        sweep(build, folder, args.total << 20)
        pause_and_work(build, folder, args.total << 20)


if __name__ == '__main__':
    main()
