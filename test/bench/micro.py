#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the parts of LeakWatch take: of one event, of a thread, of a process.

usage: micro.py BUILD-FOLDER [--rounds 7] [--only WORD] [--json FILE]
Prints a line for each measure, with the library and without: the median of the rounds, which take turns, and behind it the
lowest, which load from neighbours touches least. CPU time
of the thread where ns are told, wall time where us are, and instructions as callgrind counts them, which do not
wobble. What is measured inside the library has no 'without'. --only takes the measures whose name holds the word."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess

FRAMES = 4, 16, 32, 64
WAYS = 'known to the memo', "rules in the last walk's trail", 'rules in the table', 'every rule read from .eh_frame', \
    'walk and look-up of the site'


class Bench:
    def __init__(self, args):
        self.args, self.folder = args, args.build + '/test/bench/bench-'
        self.preloaded, self.result = args.build + '/preload/libleakwatch.so', []

    def wants(self, name):
        return not self.args.only or self.args.only in name

    def say(self, name, unit, with_it, without=()):
        """Each a list of what the rounds gave."""
        both = {word: {'median': statistics.median(values), 'lowest': min(values)}
                for word, values in (('with', with_it), ('without', without)) if values}
        self.result.append({'name': name, 'unit': unit, **both})
        words = [f'{both[w]["median"]:10,.1f} {both[w]["lowest"]:10,.1f}' if w in both else '' for w in ('with', 'without')]
        print(f'{name:58} {words[0]:21} {words[1]:21}  {unit}', flush=True)

    def output(self, command, library, before=()):
        env = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'LEAKWATCH_OPTIONS')}
        env['LEAKWATCH_OPTIONS'] = 'report=never:scan=never'
        if library:
            env['LD_PRELOAD'] = self.preloaded
        ran = subprocess.run([*before, self.folder + command[0], *map(str, command[1:])], env=env, check=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return ran.stderr if before else ran.stdout

    def compare(self, name, unit, command, with_command=None):
        """Of programs that print one number. with_command: one that sets the library for its children only."""
        if not self.wants(name):
            return
        alone, watched = [], []
        for _ in range(self.args.rounds):
            alone.append(float(self.output(command, False).split()[-1]))
            watched.append(float(self.output(with_command or command, not with_command).split()[-1]))
        self.say(name, unit, watched, alone)

    def counted(self, command, nr, function, library):
        ran = self.output([*command, nr], library, ['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null',
                                                    f'--toggle-collect={function}'])
        return int(re.search(r'Collected : (\d+)', ran)[1])

    def instructions(self, name, command, function):
        """Of one round: what 60,000 take more than 20,000, so that the first one's start is in neither."""
        if not self.wants(name) or not shutil.which('valgrind'):
            return
        self.say(name, 'instructions', *([(self.counted(command, 60000, function, library)
                                           - self.counted(command, 20000, function, library)) / 40000] for library in (True, False)))

    def tables(self, command):
        """For each number that it prints, what the rounds gave."""
        runs = [[float(word) for word in self.output(['tables', *command], False).split()] for _ in range(self.args.rounds)]
        return list(zip(*runs))


def pairs(bench):
    for frames in FRAMES:
        bench.compare(f'malloc and free, {frames} frames', 'ns', ['programs', 'pairs', frames, 1000000])
        bench.instructions(f'malloc and free, {frames} frames, counted', ['programs', 'pairs', frames], 'pairs_here')
    for threads in 1, 2:
        bench.compare(f'malloc and free, 16 frames, threads at once: {threads}', 'ns', ['micro', 'together', 1000000, threads])
    bench.compare('free of a block of this thread', 'ns', ['micro', 'own', 1000000])
    bench.compare('free of a block of another thread', 'ns', ['micro', 'across', 1000000])
    bench.compare('realloc', 'ns', ['micro', 'realloc', 1000000])


def capture(bench):
    for frames in FRAMES:
        if not bench.wants('stack'):
            return
        nr, *ways = bench.tables(['capture', frames])
        for way, value in zip(WAYS, ways):
            bench.say(f'stack of {nr[0]:.0f} frames, {way}', 'ns', value)


def blocks(bench):
    for nr, words in (1000, '1,000'), (1000000, '1 million'), (10000000, '10 million'):
        if not bench.wants('block'):
            return
        ordered, anywhere = bench.tables(['blocks', nr])
        bench.say(f'block out and in again, {words} live, one after the other', 'ns', ordered)
        bench.say(f'block out and in again, {words} live, any', 'ns', anywhere)


def starts(bench):
    bench.compare('thread: start, one pair, end', 'us', ['micro', 'threads', 3000])
    for words in ['/bin/true'], ['/bin/sh', '-c', ':']:
        spawn, preload = ['micro', 'spawn', 200], [f'LD_PRELOAD={bench.preloaded}', 'LEAKWATCH_OPTIONS=report=never']
        name = 'true' if words == ['/bin/true'] else 'sh -c :'
        bench.compare(f'process: {name}', 'us', [*spawn, '--', *words], [*spawn, *preload, '--', *words])
        bench.compare(f'process: {name}, child of a watched one', 'us', [*spawn, '--', *words])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--only')
    parser.add_argument('--json')
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    bench = Bench(args)
    print(f'{"":58} {"with":>10} {"lowest":>10} {"without":>10} {"lowest":>10}')
    for part in pairs, capture, blocks, starts:
        part(bench)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as file:
            json.dump(bench.result, file, indent=1)


if __name__ == '__main__':
    main()
