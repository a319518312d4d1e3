#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What LeakWatch costs: whole programs, with it, without a tool, and with other tools.

usage: run.py BUILD-FOLDER [--tools none,leakwatch,...] [--work 'NAME;...'] [--rounds 5] [--json FILE]
In each round every tool runs every program once, so that a change in the machine's speed meets all alike.
Printed are medians of the ratios to the run without a tool in the same round: CPU time, wall time and
peak memory (of the program itself); where a program counts by itself, nanoseconds a malloc/free pair.
What is not installed is left out and named. A quiet machine, please; below 5 % differences mean little."""
import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

LIBRARIES = '/usr/lib/x86_64-linux-gnu'
LIMIT_S = 300

PYTHON = '''import json, random
random.seed(5); rows = []; total = 0
for i in range(4000):
    rows.append({'id': i, 'name': 'name%06d' % random.randrange(10 ** 6), 'tags': ['t%d' % random.randrange(400) for _ in range(6)], 'at': {'x': random.random()}})
for turn in range(4):
    text = json.dumps(rows); back = json.loads(text); index = {}
    for row in back:
        for tag in row['tags']: index.setdefault(tag, []).append(row['name'].upper() + str(row['id']))
    total += len(text) + sum(len(','.join(names)) for names in index.values())
print(total)
'''

PERL = '''open my $in, '<', $ARGV[0] or die; my (%n, %by);
while (my $line = <$in>) { for my $w (split /[^a-z]+/, $line) { next unless length $w; $n{$w}++;
 push @{$by{length $w}}, $w if @{$by{length $w} || []} < 15000; } }
my @k = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n; print scalar(@k), " $k[0]\\n";
'''

CXX = '''#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template<int N> struct Row { std::map<std::string, std::vector<int>> m; std::variant<int, std::string> v; std::set<int> s;
 int f(const std::string &k) { m[k].push_back(N); s.insert(N); std::sort(m[k].begin(), m[k].end()); return m.size() + Row<N - 1>().f(k); } };
template<> struct Row<0> { int f(const std::string &) { return 0; } };
int main(int, char **v) { std::unordered_map<std::string, std::function<int(int)>> f; f["x"] = [](int i) { return i; };
 std::cout << Row<4>().f(v[0]) << f["x"](1) << std::endl; }
'''

JQ = 'map({id,n:.name,t:(.tags|sort|unique|length)})|group_by(.t)|map({k:.[0].t,n:length,m:(map(.n|length)|add)})'


def make_inputs(folder):
    dice = random.Random(11)

    def word():
        return ''.join(dice.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(dice.randrange(3, 10)))

    words = [word() for _ in range(20000)]
    with open(folder + '/t.sql', 'w') as file:
        file.write('create table t(id integer primary key, a int, b text);\nbegin;\n'
                   'with recursive n(i) as (select 1 union all select i+1 from n where i<100000) insert into t '
                   "select i, (i*7919)%9973, 'row-'||i||'-padding' from n;\n")
        for i in range(30000):
            file.write(f"insert into t values({200000 + i},{dice.randrange(9973)},'{dice.choice(words)}');\n")
        file.write('commit;\ncreate index ia on t(a);\nselect count(*) from (select a, group_concat(b) from t group by a);\n'
                   'select count(*) from t x join t y on x.a=y.a where x.id<4000;\ndelete from t where a%3=0;\n'
                   'update t set b=upper(b) where a%5=1;\nselect count(*), sum(length(b)) from t;\n')
    with open(folder + '/rows.json', 'w') as file:
        json.dump([{'id': i, 'name': dice.choice(words), 'tags': [dice.choice(words) for _ in range(6)]}
                   for i in range(25000)], file)
    with open(folder + '/words.txt', 'w') as file:
        for _ in range(50000):
            file.write(' '.join(dice.choice(words) for _ in range(11)) + '\n')
    for name, text in ('work.py', PYTHON), ('work.pl', PERL), ('work.cc', CXX):
        with open(f'{folder}/{name}', 'w') as file:
            file.write(text)
    files, stream = {}, ['reset refs/heads/trunk\n']
    for commit in range(900):
        stream.append(f'commit refs/heads/trunk\ncommitter A <a@example.org> {1600000000 + commit * 60} +0000\ndata 2\nc\n')
        for _ in range(3):
            name = f'd{dice.randrange(7)}/f{dice.randrange(11)}'
            lines = files.setdefault(name, [])
            for _ in range(11):
                lines.insert(dice.randrange(len(lines) + 1), ' '.join(dice.choice(words) for _ in range(6)))
            del lines[350:]
            text = '\n'.join(lines) + '\n'
            stream.append(f'M 100644 inline {name}\ndata {len(text)}\n{text}\n')
    if shutil.which('git'):
        subprocess.run(['git', 'init', '-q', '--bare', folder + '/git'], check=True)
        subprocess.run(['git', f'--git-dir={folder}/git', 'fast-import', '--quiet'], input=''.join(stream).encode(),
                       check=True)


def workloads(build, folder):
    """name -> command"""
    programs, churn = build + '/test/bench/bench-programs', build + '/test/bench/bench-churn'
    table = {
        'sqlite3': ['sqlite3', ':memory:', f'.read {folder}/t.sql'],
        'python3': ['/usr/bin/python3', folder + '/work.py'],
        'jq': ['jq', JQ, folder + '/rows.json'],
        'perl': ['perl', folder + '/work.pl', folder + '/words.txt'],
        'git log': ['git', f'--git-dir={folder}/git', '--no-pager', 'log', '-p', '--stat', '-n', '400', 'trunk'],
        'churn, 1 thread': [churn, '600000', '1'],
        'churn, 2 threads': [churn, '600000', '2'],
        'swap, 2 threads': [programs, 'swap', '1000000', '2'],
        **{f'pairs at {n} frames': [programs, 'pairs', str(n), '2000000'] for n in (4, 16, 32, 64)},
        'true': ['/bin/true'],
        '200 processes': ['sh', '-c', 'i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done'],
        '200 processes that allocate': ['sh', '-c', 'i=0; while [ $i -lt 200 ]; do /usr/bin/expr 1 : 1 >&2; i=$((i+1)); done'],
        '50 subshells': ['sh', '-c', 'i=0; while [ $i -lt 50 ]; do (: $i); i=$((i+1)); done'],
        '10,000 sites': [programs, 'sites', '10000'],
    }
    if shutil.which('g++'):
        cc1plus = subprocess.run(['g++', '-print-prog-name=cc1plus'], stdout=subprocess.PIPE, text=True).stdout.strip()
        table['cc1plus'] = [cc1plus, '-quiet', '-imultiarch', 'x86_64-linux-gnu', '-D_GNU_SOURCE', '-O0',
                            folder + '/work.cc', '-o', '/dev/null']
    return table


def tools(build, folder):
    """name -> (more environment, words before the command, what must be installed)"""
    library = build + '/preload/libleakwatch.so'
    quiet = f'log_path={folder}/out/lw.%p'
    return {
        'none': ({}, [], None),
        'leakwatch': ({'LD_PRELOAD': library, 'LEAKWATCH_OPTIONS': quiet}, [], library),
        'leakwatch depth=1': ({'LD_PRELOAD': library, 'LEAKWATCH_OPTIONS': quiet + ':depth=1'}, [], library),
        'leakwatch depth=128': ({'LD_PRELOAD': library, 'LEAKWATCH_OPTIONS': quiet + ':depth=128'}, [], library),
        'lsan': ({'LD_PRELOAD': LIBRARIES + '/liblsan.so.0', 'LSAN_OPTIONS': f'exitcode=0:log_path={folder}/out/lsan'},
                 [], LIBRARIES + '/liblsan.so.0'),
        'heaptrack': ({}, ['heaptrack', '-o', folder + '/out/ht'], 'heaptrack'),
        'gperftools': ({'LD_PRELOAD': LIBRARIES + '/libtcmalloc.so.4', 'HEAPPROFILE': folder + '/out/hp'}, [],
                       LIBRARIES + '/libtcmalloc.so.4'),
        'valgrind': ({}, ['valgrind', '-q', '--leak-check=full', f'--log-file={folder}/out/vg.%p'], 'valgrind'),
    }


def run_once(command, tool, build, folder):
    """CPU s and wall s with all children, peak KiB of the biggest process, status, nanoseconds a pair or None"""
    more, before, _ = tool
    env = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'LEAKWATCH_OPTIONS', 'DEBUGINFOD_URLS')}
    os.makedirs(folder + '/out', exist_ok=True)
    out = open(folder + '/stdout', 'w+b')
    settings = ['PYTHONMALLOC=malloc'] + [f'{k}={v}' for k, v in more.items()]
    subprocess.run([build + '/test/bench/bench-start', folder + '/usage', str(LIMIT_S), *settings, '--', *before, *command],
                   env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, check=True)
    with open(folder + '/usage') as file:
        cpu, wall, peak, status = file.read().split()
    out.seek(0)
    pair = re.search(rb'ns_per_pair ([0-9.]+)', out.read())
    out.close()
    shutil.rmtree(folder + '/out', ignore_errors=True)
    return float(cpu), float(wall), int(peak), int(status), pair and float(pair[1])


def ratios(runs, base):
    """Medians over the rounds of run / base, for CPU, wall, memory; and of the difference of ns a pair."""
    three = [statistics.median(r[i] / max(b[i], 1e-4) for r, b in zip(runs, base)) for i in range(3)]
    pairs = [r[4] - b[4] for r, b in zip(runs, base) if r[4] and b[4]]
    return three + [statistics.median(pairs) if pairs else None]


def measure(name, command, table, rounds, build, folder):
    runs = {tool: [] for tool in table}
    for number in range(rounds + 1):
        for tool, how in table.items():
            result = run_once(command, how, build, folder)
            if number:  # the first round warms up
                runs[tool].append(result)
    base = runs['none']
    row = {'cpu_s': statistics.median(b[0] for b in base), 'wall_s': statistics.median(b[1] for b in base),
           'peak_kib': statistics.median(b[2] for b in base), 'tools': {}}
    print(f'{name}: {row["cpu_s"]:.3f} s CPU, {row["wall_s"]:.3f} s, {row["peak_kib"] / 1024:.0f} MiB')
    for tool in table:
        if tool == 'none':
            continue
        cpu, wall, memory, pair = ratios(runs[tool], base)
        status = {r[3] for r in runs[tool]} - {b[3] for b in base}
        more_ms = statistics.median(r[1] - b[1] for r, b in zip(runs[tool], base)) * 1e3
        row['tools'][tool] = {'cpu': cpu, 'wall': wall, 'memory': memory, 'ns_per_pair': pair, 'more_ms': more_ms,
                              'status': sorted(status)}
        print(f'    {tool:20} CPU {cpu:6.2f}  wall {wall:6.2f} ({more_ms:+.1f} ms)  memory {memory:5.2f}'
              + (f'  {pair:+.1f} ns a pair' if pair is not None else '')
              + (f'  STATUS {sorted(status)}' if status else ''))
        sys.stdout.flush()
    return row


def main():
    parser = argparse.ArgumentParser(description='see the head of this file')
    parser.add_argument('build')
    parser.add_argument('--tools', default='leakwatch,leakwatch depth=1')
    parser.add_argument('--work', help='names with semicolons between')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--json')
    args = parser.parse_args()
    build, folder = os.path.abspath(args.build), tempfile.mkdtemp(prefix='leakwatch-bench.')
    try:
        make_inputs(folder)
        known, chosen = tools(build, folder), {}
        for tool in ['none'] + [t for t in args.tools.split(',') if t != 'none']:
            needs = known[tool][2]
            if needs and not os.path.exists(needs) and not shutil.which(needs):
                print(f'{tool} is left out: {needs} is not there')
            else:
                chosen[tool] = known[tool]
        result = {}
        for name, command in workloads(build, folder).items():
            if args.work and name not in args.work.split(';'):
                continue
            if not shutil.which(command[0]):
                print(f'{name} is left out: {command[0]} is not there')
                continue
            result[name] = measure(name, command, chosen, args.rounds, build, folder)
        if args.json:
            with open(args.json, 'w') as file:
                json.dump(result, file, indent=1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
