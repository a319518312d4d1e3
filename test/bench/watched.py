#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to be watched, and to watch.

usage: watched.py BUILD-FOLDER [--rounds 12] [--only cpu,latency,screen,viewer] [--script FILE ARGUMENT...]
cpu      CPU time of one Python program (PYTHONMALLOC=malloc) that does the same turn of work again and again, its
         helper's with it: turns with a viewer at 1 s against the turns before and after, without; and the helper's
         own share, which other load on the machine hardly touches
latency  what 999 of 1000 measures of four pairs of malloc and free stay below, watched against alone, in turns
screen   from the command to the first screen of a program with 100,000 sites
viewer   the screen's CPU time and the helper's, at 1 s, of that program, 10,000 of whose sites change in a tick
Medians are printed, and where half of the pairs lie; beside them the same of what was not watched at all, which is
the machine's noise. Each part ends after LIMIT_S seconds at most, with the rounds it has by then."""
import argparse
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from workloads import PYTHON

SITES, CHANGING = 100000, 12000  # it gets round nearly all of those in a second
LIMIT_S, TURN_S = 95, 2.5
COUNT, TICK = 5, 13  # LW_WIRE_COUNT, LW_WIRE_TICK


def within_limit(rounds):
    """Their numbers, until the time is over; two at least."""
    end_s = time.monotonic() + LIMIT_S
    for i in range(rounds):
        if i >= 2 and time.monotonic() > end_s:
            break
        yield i


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
        self.preloaded = build + '/preload/libleakwatch.so'
        self.snapshot = build + '/snapshot/leakwatch-snapshot'
        self.victim = build + '/test/victims/victim-live'
        self.env = dict(os.environ, LD_PRELOAD=self.preloaded, LEAKWATCH_OPTIONS='report=never', PYTHONMALLOC='malloc')

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
    if len(pairs) < 2:
        return 'one pair only: ' + ''.join(f'{100 * (watched / alone - 1):+.1f} %' for alone, watched in pairs)
    ratios = [100 * (watched / alone - 1) for alone, watched in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    return f'{statistics.median(ratios):+.1f} % in the middle of {len(ratios)} pairs (half of them {low:+.1f} to {high:+.1f})'


# ---- what the program pays ----

# Reads lines; for each it does its turn of work once, and says so.
TURNS = '''import sys
sys.argv = sys.argv[1:]
code, real = compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'), sys.stdout
print = lambda *_: None
real.write('ready\\n'); real.flush()
for line in sys.stdin:
    for i in range(int(line)):
        exec(code, {'__name__': '__main__', 'print': print})
    real.write('done\\n'); real.flush()
'''


class Worker:
    def __init__(self, bench, script):
        self.bench = bench
        self.process = subprocess.Popen(['python3', '-c', TURNS, *script], env=bench.env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.repeats = 1
        self.turn()
        used = self.turn()
        self.repeats = max(1, round(TURN_S / used))

    def turn(self):
        """CPU seconds of one."""
        before = process_cpu(self.process.pid)
        self.process.stdin.write(f'{self.repeats}\n')
        self.process.stdin.flush()
        self.process.stdout.readline()
        return process_cpu(self.process.pid) - before

    def watched_turn(self):
        """CPU seconds of program and helper, and of the helper alone, its start with it."""
        viewer = self.bench.view(self.process.pid, '--interval=1')
        used = self.turn()
        helper = helper_of(self.process.pid)
        helper_s = process_cpu(helper) if helper else 0
        stop(viewer)
        while helper_of(self.process.pid):  # it goes when the program next allocates, or soon after
            self.process.stdin.write('0\n')
            self.process.stdin.flush()
            self.process.stdout.readline()
            time.sleep(0.05)
        return used + helper_s, helper_s


def measure_cpu(bench, rounds, script):
    pairs, same, shares = [], [], []
    with tempfile.NamedTemporaryFile('w', suffix='.py') as file:
        file.write(PYTHON)
        file.flush()
        worker = Worker(bench, script or [file.name])
        before = worker.turn()
        for _ in within_limit(rounds):
            used, helper_s = worker.watched_turn()
            after = worker.turn()
            pairs.append(((before + after) / 2, used))
            same.append((before, after))
            shares.append(100 * helper_s / used)
            before = after
    end(worker.process)
    print(f'CPU of a Python program, watched: {percent_more(pairs)}; alone {statistics.median(p[0] for p in pairs):.2f} s'
          f' a turn; the helper takes {statistics.median(shares):.2f} % of it; noise: {percent_more(same)}', flush=True)


def ask(process):
    process.stdin.write('\n')
    process.stdin.flush()
    return int(process.stdout.readline().split()[1])


def measure_latency(bench, rounds):
    process = bench.start('latency')
    pairs, same = [], []
    ask(process)
    before = ask(process)
    for _ in within_limit(2 * rounds):
        viewer = bench.view(process.pid, '--interval=1')
        viewer.stdout.readline()
        watched = ask(process)
        stop(viewer)
        after = ask(process)
        pairs.append(((before + after) / 2, watched))
        same.append((before, after))
        before = after
    print(f'p99.9 of four pairs of malloc and free, watched: {percent_more(pairs)};'
          f' alone {statistics.median(p[0] for p in pairs):.0f} ns; noise: {percent_more(same)}', flush=True)
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
    for _ in within_limit(rounds):
        screen = Screen(bench, process.pid)
        took.append(screen.read(60, b'? help') or 60)
        cpu = process_cpu(screen.pid)
        screen.close()
    print(f'first screen of {SITES} sites: {statistics.median(took):.2f} s, lowest {min(took):.2f} s;'
          f' {cpu:.2f} s of CPU', flush=True)
    end(process)


def measure_viewer(bench, rounds):
    process = bench.start('wild', str(SITES), str(CHANGING))
    screen = Screen(bench, process.pid)
    screen.read(60, b'? help')
    screen.read(3)
    used, helped = [], []
    for _ in within_limit(rounds):
        before, its_before, began = process_cpu(screen.pid), process_cpu(helper_of(process.pid)), time.monotonic()
        screen.read(4)
        passed = time.monotonic() - began
        used.append(100 * (process_cpu(screen.pid) - before) / passed)
        helped.append(100 * (process_cpu(helper_of(process.pid)) - its_before) / passed)
    screen.close()
    print(f'viewer of {SITES} sites, {changes_in_a_tick(bench, process.pid):.0f} of them changing in a tick:'
          f' {statistics.median(used):.1f} % of a core (most {max(used):.1f}), the helper {statistics.median(helped):.1f} %', flush=True)
    end(process)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=12)
    parser.add_argument('--only', default='cpu,latency,screen,viewer')
    parser.add_argument('--script', nargs=argparse.REMAINDER)
    given = parser.parse_args()
    bench = Bench(os.path.realpath(given.build))
    wanted = given.only.split(',')
    print(f'load average {os.getloadavg()[0]:.1f}', flush=True)
    for name, measure in (('cpu', lambda: measure_cpu(bench, given.rounds, given.script)),
                          ('latency', lambda: measure_latency(bench, given.rounds)),
                          ('screen', lambda: measure_screen(bench, given.rounds)),
                          ('viewer', lambda: measure_viewer(bench, given.rounds))):
        if name in wanted:
            measure()


main()
