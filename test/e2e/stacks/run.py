#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every stack taken in real programs is the one libunwind finds, and remembered ones are those a walk
would find. Speaks TAP.

usage: run.py BUILD-FOLDER [--only NAME,...] [--show]
Runs programs under libobserve.so (observe.c), which compares up to 150,000 stacks of each: once our walk
with unw_step, frame by frame, once what the memo answers with a walk. --show prints the differences.
A difference is a failure unless EXPLAINED knows it."""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

WANTED = 100000
DEPTH = 128

# What libunwind does otherwise, on purpose: (outcome, module of the last frame both agree on, why).
EXPLAINED = ()

CXX = '''#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template<int N> struct Row { std::map<std::string, std::vector<int>> m; std::variant<int, std::string> v;
 int f(const std::string &s) { m[s].push_back(N); std::sort(m[s].begin(), m[s].end()); return m.size() + Row<N - 1>().f(s); } };
template<> struct Row<0> { int f(const std::string &) { return 0; } };
int main(int, char **v) { std::unordered_map<std::string, std::function<int(int)>> f; f["x"] = [](int i) { return i; };
 std::cout << Row<5>().f(v[0]) << f["x"](1) << std::regex_match("a", std::regex("a+")) << std::endl; }
'''

PYTHON = '''import json, re, collections
data = [{'id': i, 'tags': ['t%d' % (i * k % 501) for k in range(6)], 'pos': {'x': i / 7}} for i in range(4000)]
for turn in range(3):
    text = json.dumps(data); back = json.loads(text)
    index = collections.defaultdict(list)
    for row in back:
        for tag in row['tags']: index[tag].append(str(row['id']).upper())
    print(len(text), len(index), len(re.sub('[0-4]+', lambda m: m[0] * 2, text)))
'''

PERL = '''my (%count, %by);
for my $i (1 .. 60000) { my $w = sprintf 'word%d', $i * 7919 % 10007; $count{$w}++; push @{$by{length $w}}, $w . $i; }
my @k = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@k), " ", length(join ',', map { "$_=$count{$_}" } @k), "\\n";
'''

JQ = ('[range(9000)|{id:., name:"user\\(. * 7919 % 10007)", tags:[(. % 7|tostring), (. % 11|tostring)]}]'
      '|group_by(.tags[0])|map({k:.[0].tags[0], n:length, s:(map(.name|length)|add)})')


def make_sql(path):
    with open(path, 'w') as file:
        file.write('create table t(id integer primary key, a int, b text);\n'
                   'with recursive n(i) as (select 1 union all select i+1 from n where i<40000) insert into t '
                   "select i, (i*7919)%1009, 'name-'||i from n;\n")
        for i in range(9000):
            file.write(f"insert into t values({i + 50000},{i * 31 % 1009},'text {i}');\n")
        file.write('create index ia on t(a);select a,count(*),group_concat(b) from t group by a limit 3;\n'
                   'delete from t where a%3=0;update t set b=upper(b) where a%5=1;select count(*) from t;\n')


def make_repository(path):
    """Some hundred commits, by fast-import."""
    dice, files, stream = random.Random(3), {}, ['reset refs/heads/trunk\n']
    for commit in range(400):
        message = f'change {commit}\n'
        stream.append(f'commit refs/heads/trunk\ncommitter A <a@example.org> {1600000000 + commit * 60} +0000\n'
                      f'data {len(message)}\n{message}')
        for _ in range(3):
            name = f'd{dice.randrange(6)}/f{dice.randrange(9)}'
            lines = files.setdefault(name, [])
            for _ in range(10):
                lines.insert(dice.randrange(len(lines) + 1), f'line {dice.randrange(10 ** 6)} of {name}')
            text = '\n'.join(lines) + '\n'
            stream.append(f'M 100644 inline {name}\ndata {len(text)}\n{text}\n')
    subprocess.run(['git', 'init', '-q', '--bare', path], check=True)
    subprocess.run(['git', f'--git-dir={path}', 'fast-import', '--quiet'], input=''.join(stream).encode(), check=True)


def programs(folder):
    """name -> (command, more environment, every how many allocations)"""
    def write(name, text):
        with open(f'{folder}/{name}', 'w') as file:
            file.write(text)
        return f'{folder}/{name}'

    table = {}
    if shutil.which('sqlite3'):
        make_sql(folder + '/t.sql')
        table['sqlite3'] = (['sqlite3', ':memory:', f'.read {folder}/t.sql'], {}, 1)
    table['python3'] = (['/usr/bin/python3', write('w.py', PYTHON)], {'PYTHONMALLOC': 'malloc'}, 6)
    if shutil.which('g++'):
        cc1plus = subprocess.run(['g++', '-print-prog-name=cc1plus'], stdout=subprocess.PIPE, text=True).stdout.strip()
        table['cc1plus'] = ([cc1plus, '-quiet', '-imultiarch', 'x86_64-linux-gnu', '-D_GNU_SOURCE', '-O1',
                             write('w.cc', CXX), '-o', '/dev/null'], {}, 12)
    if shutil.which('git'):
        make_repository(folder + '/git')
        table['git'] = (['git', f'--git-dir={folder}/git', '--no-pager', 'log', '-p', '--stat', 'trunk'], {}, 1)
    if shutil.which('perl'):
        table['perl'] = (['perl', write('w.pl', PERL)], {}, 1)
    if shutil.which('jq'):
        table['jq'] = (['jq', '-n', JQ], {}, 1)
    return table


def observe(build, folder, mode, command, more, every):
    result = f'{folder}/result'
    if os.path.exists(result):
        os.remove(result)
    env = {'PATH': '/usr/bin:/bin', 'HOME': folder, 'LC_ALL': 'C.UTF-8', **more,
           'LD_PRELOAD': f'{build}/test/e2e/stacks/libobserve.so', 'LW_OBSERVE': f'{mode}:{every}:{result}',
           'LEAKWATCH_OPTIONS': f'report=never:depth={DEPTH}'}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    with open(result, errors='replace') as file:
        text = file.read()
    counts = {k: int(v) for k, v in re.findall(r'^(\w+) (\d+)$', text, re.M)}
    notes = re.split(r'^note ', text, flags=re.M)[1:]
    return counts, notes, done


def is_explained(note):
    return any(note.startswith(outcome) and re.search(pattern, note) for outcome, pattern, _ in EXPLAINED)


def main():
    parser = argparse.ArgumentParser(description='see the head of this file')
    parser.add_argument('build')
    parser.add_argument('--only', type=lambda names: names.split(','))
    parser.add_argument('--show', action='store_true')
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    if not os.path.exists(f'{build}/test/e2e/stacks/libobserve.so'):
        print('1..0 # SKIP libunwind is not installed')
        return
    folder, nr, bad = tempfile.mkdtemp(prefix='leakwatch-stacks.'), 0, 0
    try:
        for name, (command, more, every) in programs(folder).items():
            if args.only and name not in args.only:
                continue
            for mode in 'walk', 'memo':
                counts, notes, done = observe(build, folder, mode, command, more, every)
                strange = [n for n in notes if not is_explained(n)]
                off = sum(counts.get(k, 0) for k in ('shorter', 'longer', 'different', 'lost'))
                good = counts.get('compared', 0) >= WANTED and not strange and done.returncode == 0
                nr, bad = nr + 1, bad + (not good)
                print(f'{"" if good else "not "}ok {nr} - {name}, {mode}: {counts.get("compared")} stacks of '
                      f'{counts.get("frames", 0) / max(counts.get("compared", 0), 1):.1f} frames, {off} not the same')
                if not good or args.show:
                    print('#', json.dumps(counts), 'status', done.returncode, done.stderr.decode(errors='replace')[:200])
                    for note in notes[:6 if not args.show else None]:
                        print('# ' + note.strip().replace('\n', '\n# '))
                sys.stdout.flush()
        print(f'1..{nr}')
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(bad != 0)


main()
