#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to look whether a release is right: instructions of a pair, with the look and without.

usage: checking.py BUILD-FOLDER. Builds release.c again with an is_right() that says yes, links a second library with
it, and counts the pairs of bench-sites in both under callgrind: counts do not wobble. The limit is 2 per cent."""
import json
import os
import re
import subprocess
import sys
import tempfile

build = os.path.abspath(sys.argv[1])


def run(command):
    return subprocess.run(command, shell=True, cwd=build, check=True, capture_output=True, text=True)


def unchecked_library(work):
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        entry = next(e for e in json.load(file) if 'libleakwatch.so.p/record_release.c.o' in e['output'])
    source = os.path.join(build, entry['file'])
    with open(source, encoding='utf-8') as file:
        text = file.read()
    changed = re.sub(r'(LW_INLINE bool is_right\([^{]*\{\n).*?\n\}', r'\1\t(void)block, (void)kind, (void)has_bytes, '
                     r'(void)bytes;\n\treturn true;\n}', text, count=1, flags=re.S)
    assert changed != text
    with open(os.path.join(work, 'release.c'), 'w', encoding='utf-8') as file:
        file.write(changed)
    command = entry['command'].replace(entry['file'], f'{work}/release.c')
    run(re.sub(r'-MF \S+', f'-MF {work}/d', re.sub(r'-o \S+', f'-o {work}/release.o', command)))
    link = run('ninja -t commands preload/libleakwatch.so').stdout.strip().split('\n')[-1]
    run(link.replace('-o preload/libleakwatch.so', f'-o {work}/unchecked.so')
        .replace('preload/libleakwatch.so.p/record_release.c.o', f'{work}/release.o'))
    return f'{work}/unchecked.so'


def instructions(library, function):
    """Of one pair, between the caller's call and its return."""
    program = f'{build}/test/bench/bench-sites'
    ran = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', f'--toggle-collect={function}*',
                          program, '3'], env=dict(os.environ, LD_PRELOAD=library), capture_output=True, text=True, check=True)
    return int(re.search(r'refs:\s+([\d,]+)', ran.stderr)[1].replace(',', '')) / 60000


def main():
    with tempfile.TemporaryDirectory() as work:
        other, bad = unchecked_library(work), False
        for name, function in ('malloc and free', 'c_plain'), ('new and delete', 'cxx_plain'):
            with_it, without = instructions(f'{build}/preload/libleakwatch.so', function), instructions(other, function)
            more = 100 * (with_it - without) / without
            bad = bad or more > 2
            print(f'{name}: {with_it:.0f} instructions a pair, {without:.0f} unchecked: {more:+.1f} %')
    sys.exit(bad)


main()
