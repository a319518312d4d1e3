#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to be watched, and to watch.

usage: watched.py BUILD-FOLDER [--rounds 7] [--only cpu,latency,screen,viewer] [--script FILE ARGUMENT...]
cpu      CPU time of a Python program (PYTHONMALLOC=malloc), its helper's with it, with a viewer at 1 s against
         without, in turns; and the helper's own share, which other load on the machine hardly touches
latency  what 999 of 1000 measures of four pairs of malloc and free stay below, watched against alone, in turns
screen   from the command to the first screen of a program with 100,000 sites
viewer   the screen's CPU time and the helper's, at 1 s, of that program, 10,000 of whose sites change in a tick
A quiet machine, please: medians of pairs are printed, and where half of them lie."""
import argparse
import ctypes
import os
import pty
import resource
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from run import PYTHON

SITES, CHANGING = 100000, 20000  # it gets round half of those in a second
ORDER = 'alone', 'watched', 'again'
COUNT, TICK = 5, 13  # LW_WIRE_COUNT, LW_WIRE_TICK
PR_SET_CHILD_SUBREAPER = 36


def seconds(usage):
    return usage.ru_utime + usage.ru_stime


def children_cpu():
    return seconds(resource.getrusage(resource.RUSAGE_CHILDREN))


def helper_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        found = file.read().split()
    return int(found[0]) if found else None


def process_cpu(pid):
    """In seconds; of a process that is gone, None."""
    try:
        with open(f'/proc/{pid}/schedstat') as file:
            return int(file.read().split()[0]) / 1e9
    except OSError:
        return None


class Bench:
    def __init__(self, build):
        self.library = build + '/preload/libleakwatch.so'
        self.snapshot = build + '/snapshot/leakwatch-snapshot'
        self.victim = build + '/test/victims/victim-live'
        self.env = dict(os.environ, LD_PRELOAD=self.library, LEAKWATCH_OPTIONS='report=never', PYTHONMALLOC='malloc')

    def start(self, *arguments):
        process = subprocess.Popen([self.victim, *arguments], env=self.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        while process.stdout.readline() != 'ready\n':
            pass
        return process

    def view(self, pid, *flags):
        return subprocess.Popen([self.snapshot, '--json', '--top=1', *flags, str(pid)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)


def stop(process):
    process.kill()
    process.stdout.close()
    process.wait()


def end(process):
    process.stdin.close()
    process.stdout.close()
    process.wait()


def percent_more(pairs):
    ratios = [100 * (watched / alone - 1) for alone, watched in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    return f'{statistics.median(ratios):+.1f} % in the middle of {len(ratios)} pairs (half of them {low:+.1f} to {high:+.1f})'


# ---- what the program pays ----

def run_program(bench, command, is_watched):
    """CPU seconds of program and helper, and of the helper alone."""
    process = subprocess.Popen(command, env=bench.env, stdout=subprocess.DEVNULL)
    helper_s, viewer = 0.0, None
    if is_watched:
        time.sleep(0.3)
        viewer = bench.view(process.pid, '--interval=1')
    while True:
        helper = is_watched and helper_of(process.pid)
        helper_s = (helper and process_cpu(helper)) or helper_s
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.05)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    if viewer:
        viewer.communicate()
    before = children_cpu()
    try:  # a helper that outlived it is ours now; one that it has reaped is in its own sum
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    helper_s = max(helper_s, children_cpu() - before)
    return seconds(usage) + children_cpu() - before, helper_s


def measure_cpu(bench, rounds, script):
    pairs, same, shares = [], [], []
    with tempfile.NamedTemporaryFile('w', suffix='.py') as file:
        file.write(PYTHON)
        file.flush()
        command = ['python3'] + (script or [file.name])
        for i in range(rounds):
            got = {}
            for how in sorted(('alone', 'again', 'watched'), key=lambda how, i=i: (ORDER.index(how) + i) % 3):
                got[how], helper_s = run_program(bench, command, how == 'watched')
                if how == 'watched':
                    shares.append(100 * helper_s / got[how])
            pairs.append(((got['alone'] + got['again']) / 2, got['watched']))
            same.append((got['alone'], got['again']))
    print(f'CPU of a Python program, watched: {percent_more(pairs)}; alone {statistics.median(p[0] for p in pairs):.2f} s;'
          f' the helper takes {statistics.median(shares):.2f} % of it; alone against alone, which is noise: {percent_more(same)}')


def ask(process):
    process.stdin.write('\n')
    process.stdin.flush()
    return int(process.stdout.readline().split()[1])


def measure_latency(bench, rounds):
    process = bench.start('latency')
    pairs = []
    ask(process)
    for i in range(rounds):
        got = {}
        for is_watched in (False, True) if i % 2 else (True, False):
            viewer = is_watched and bench.view(process.pid, '--interval=1')
            if viewer:
                viewer.stdout.readline()
            got[is_watched] = ask(process)
            if viewer:
                stop(viewer)
        pairs.append((got[False], got[True]))
    print(f'p99.9 of four pairs of malloc and free, watched: {percent_more(pairs)};'
          f' alone {statistics.median(p[0] for p in pairs):.0f} ns')
    end(process)


# ---- what the viewer pays ----

class Screen:
    """leakwatch-snapshot in a terminal of 80 by 24, which is read to the end."""

    def __init__(self, bench, pid):
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM='xterm', LC_ALL='C.UTF-8', LINES='24', COLUMNS='80')
            os.execv(bench.snapshot, [bench.snapshot, str(pid)])
        self.text = b''

    def read(self, for_s, until=None):
        end_s = time.monotonic() + for_s
        while time.monotonic() < end_s:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 65536)
                except OSError:  # it has ended
                    return None
            if until and until in self.text:
                return time.monotonic() - self.began
        return None

    def close(self):
        os.write(self.fd, b'q')
        self.read(0.3)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def changes_in_a_tick(bench, pid):
    """COUNT records in the last ticks of a recording."""
    with tempfile.TemporaryDirectory() as folder:
        name = folder + '/watch.lw'
        subprocess.run([bench.snapshot, '--interval=1', '--count=4', '--save=' + name, '--top=1', str(pid)],
                       stdout=subprocess.DEVNULL, check=False)
        with open(name, 'rb') as file:
            records = file.read()
    ticks, at, nr = [], 0, 0
    while at < len(records):
        kind, _, nr_bytes = struct.unpack_from('<qII', records, at)
        at += nr_bytes
        nr += kind == COUNT
        if kind == TICK:
            ticks.append(nr)
            nr = 0
    return statistics.median(ticks[1:])


def measure_screen(bench, rounds):
    process = bench.start('wild', str(SITES), str(CHANGING))
    took = []
    for _ in range(rounds):
        screen = Screen(bench, process.pid)
        took.append(screen.read(60, b'? help') or 60)
        cpu = process_cpu(screen.pid)
        screen.close()
    print(f'first screen of {SITES} sites: {statistics.median(took):.2f} s, lowest {min(took):.2f} s;'
          f' {cpu:.2f} s of CPU')
    end(process)


def measure_viewer(bench, rounds):
    process = bench.start('wild', str(SITES), str(CHANGING))
    screen = Screen(bench, process.pid)
    screen.read(60, b'? help')
    screen.read(3)
    used, helped = [], []
    for _ in range(rounds):
        before, its_before, began = process_cpu(screen.pid), process_cpu(helper_of(process.pid)), time.monotonic()
        screen.read(4)
        passed = time.monotonic() - began
        used.append(100 * (process_cpu(screen.pid) - before) / passed)
        helped.append(100 * (process_cpu(helper_of(process.pid)) - its_before) / passed)
    screen.close()
    print(f'viewer of {SITES} sites, {changes_in_a_tick(bench, process.pid):.0f} of them changing in a tick:'
          f' {statistics.median(used):.1f} % of a core (most {max(used):.1f}), the helper {statistics.median(helped):.1f} %')
    end(process)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--only', default='cpu,latency,screen,viewer')
    parser.add_argument('--script', nargs=argparse.REMAINDER)
    given = parser.parse_args()
    bench = Bench(os.path.realpath(given.build))
    wanted = given.only.split(',')
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f'load average {os.getloadavg()[0]:.1f}')
    for name, measure in (('cpu', lambda: measure_cpu(bench, given.rounds, given.script)),
                          ('latency', lambda: measure_latency(bench, given.rounds)),
                          ('screen', lambda: measure_screen(bench, given.rounds)),
                          ('viewer', lambda: measure_viewer(bench, given.rounds))):
        if name in wanted:
            measure()
            sys.stdout.flush()


main()
