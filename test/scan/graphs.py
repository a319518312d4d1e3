#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random object graphs with known truth against the scanner: nothing reachable may be called lost.

usage: graphs.py LIBRARY GRAPHS-PROGRAM [GRAPHS [PER-RUN [ALLOCATOR ...]]]   speaks TAP
Missed lost blocks are allowed up to 0.1 %. Other allocators are named by their library's path."""
import json
import os
import subprocess
import sys
import tempfile

FUNCTIONS = ('make_live', 'make_lost')


def verdicts(report):
    """function -> verdict -> blocks"""
    found = {name: {} for name in FUNCTIONS}
    for site in report['sites']:
        name = next((f.get('function') for f in site['frames'] if f.get('function') in FUNCTIONS), None)
        if name:
            found[name][site['verdict']] = found[name].get(site['verdict'], 0) + site['blocks']
    return found


def run(library, program, seed, nr_graphs, how, freeze, allocator, folder):
    path = os.path.join(folder, 'report.json')
    env = dict(os.environ, LEAKWATCH_OPTIONS=f'json={path}:log_path=/dev/null:depth=4:freeze={freeze}',
               LD_PRELOAD=library + (' ' + allocator if allocator else ''))
    out = subprocess.run([program, str(seed), str(nr_graphs), how], env=env, capture_output=True, text=True,
                         timeout=60, check=False)
    with open(path, encoding='utf-8') as file:
        report = json.load(file)
    os.remove(path)
    nr_live, nr_lost = map(int, out.stdout.split())
    found = verdicts(report)
    accused = sum(found['make_live'].get(v, 0) for v in ('lost', 'indirect'))
    right = sum(found['make_lost'].get(v, 0) for v in ('lost', 'indirect'))
    whole = sum(found['make_live'].values()) == nr_live and sum(found['make_lost'].values()) == nr_lost
    state = report.get('scan', {}).get('state')
    return nr_live, nr_lost, accused, nr_lost - right, whole and state == 'done', report.get('scan')


def main():
    library, program = sys.argv[1:3]
    nr_all = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    per_run = int(sys.argv[4]) if len(sys.argv) > 4 else 100
    allocators = [''] + sys.argv[5:]
    nr, bad = 0, 0
    with tempfile.TemporaryDirectory(prefix='leakwatch-test.') as folder:
        for allocator in allocators:
            for how, freeze in (('exit', 'ptrace'), ('_exit', 'ptrace'), ('threads', 'ptrace'), ('threads', 'signal'),
                                ('threads', 'none')):
                live = lost = accused = missed = 0
                strange = []
                for seed in range(1, max(1, nr_all // per_run // 5) + 1):
                    one = run(library, program, seed, per_run, how, freeze, allocator, folder)
                    live, lost, accused, missed = (live + one[0], lost + one[1], accused + one[2], missed + one[3])
                    if one[2] or not one[4] or one[3] * 1000 > one[1]:
                        strange.append((seed, one))
                nr += 1
                good = not accused and missed * 1000 <= lost and all(s[1][4] for s in strange)
                bad += not good
                name = f'{how}, {freeze}, {os.path.basename(allocator) or "glibc"}'
                print(f'{"" if good else "not "}ok {nr} - {name}: {live} reachable, {accused} accused; '
                      f'{lost} lost, {missed} missed', flush=True)
                for seed, one in strange[:5]:
                    print(f'# seed {seed}: {one}')
    print(f'1..{nr}')
    sys.exit(bad > 0)


main()
