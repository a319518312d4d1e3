#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The counters of every site and every entry of the block table are what a slow tracker of the same
events has, in real programs and all their children. Speaks TAP.

usage: run.py BUILD-FOLDER [NAME...]
Runs programs under libreference.so (reference.c), which compares when a process ends and writes the differences."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

PYTHON = '''import json, threading
data = [{"id": i, "tags": ["t%d" % (i * k % 501) for k in range(6)], "at": {"x": i / 7}} for i in range(3000)]
text = json.dumps(data)
back = json.loads(text)
threads = [threading.Thread(target=json.loads, args=(text,)) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(text), len(back))
'''

SQL = '''create table t(id integer primary key, a int, b text);
with recursive n(i) as (select 1 union all select i+1 from n where i<20000)
insert into t select i, (i*7919)%1009, 'name-'||i from n;
create index ia on t(a); select a, count(*), group_concat(b) from t group by a limit 3;
delete from t where a%3=0; update t set b=upper(b) where a%5=1; select count(*) from t;
'''

CXX = '''#include <map>
#include <string>
#include <vector>
int main(int c, char **v) { std::map<std::string, std::vector<int>> m; m[v[0]].push_back(c); return m.size() - 1; }
'''

PERL = '''my %c; for my $i (1 .. 30000) { $c{sprintf "w%d", $i * 7919 % 3007}++; }
my @k = sort { $c{$b} <=> $c{$a} || $a cmp $b } keys %c; print scalar(@k), length(join ",", @k), "\\n";'''

SHELL = '''for i in 1 2 3; do x=$(echo $i | sed s/1/one/); y="$y $(printf %s "$x" | tr a-z A-Z)"; done
(exit 3) ; echo "$y" | cat'''


def programs(work, build):
    """name, command, least number of events, input"""
    cxx = os.path.join(work, 'a.cc')
    with open(cxx, 'w') as file:
        file.write(CXX)
    repository = os.path.join(work, 'r')
    if shutil.which('git'):
        subprocess.run(['git', 'init', '-q', repository], check=True)
        for i in range(30):
            subprocess.run(['git', '-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@example.org',
                            'commit', '-q', '--allow-empty', '-m', f'change {i}'], check=True)
    yield 'churn', [os.path.join(build, 'test/e2e/reference/reference-churn')], 100000, None
    yield 'python3', ['python3', '-c', PYTHON], 50000, None
    yield 'sqlite3', ['sqlite3', ':memory:'], 10000, SQL
    yield 'g++', ['g++', '-O1', '-c', cxx, '-o', os.path.join(work, 'a.o')], 100000, None
    yield 'perl', ['perl', '-e', PERL], 5000, None
    yield 'git', ['git', '-C', repository, 'log', '--stat', '--format=fuller'], 500, None
    yield 'bash', ['bash', '-c', SHELL], 500, None


def run(command, text, library, out):
    open(out, 'w').close()
    env = dict(os.environ, LD_PRELOAD=library, LEAKWATCH_OPTIONS='report=never', LW_REFERENCE=out,
               PYTHONMALLOC='malloc', LC_ALL='C.UTF-8', GIT_PAGER='cat')
    done = subprocess.run(command, input=text, text=True, env=env, timeout=200, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    with open(out) as file:
        return done.returncode, done.stderr, file.read().splitlines()


def main():
    build, only = sys.argv[1], sys.argv[2:]
    library = os.path.join(build, 'test/e2e/reference/libreference.so')
    nr = nr_bad = 0
    with tempfile.TemporaryDirectory() as work:
        for name, command, least, text in programs(work, build):
            if only and name not in only:
                continue
            nr += 1
            if not shutil.which(command[0]):
                print(f'ok {nr} - {name} # SKIP not installed')
                continue
            status, errors, lines = run(command, text, library, os.path.join(work, 'out'))
            told = [line for line in lines if line.startswith('#')]
            ends = [re.match(r'\d+ events (\d+) sites (\d+) blocks (\d+) .*differences (\d+)', line) for line in lines
                    if not line.startswith('#')]
            events = sum(int(end[1]) for end in ends)
            good = status == 0 and ends and not any(int(end[4]) for end in ends) and events >= least
            print(f'{"" if good else "not "}ok {nr} - {name}: {events} events in {len(ends)} processes agree')
            if not good:
                nr_bad += 1
                print(f'# status {status}')
                for line in errors.splitlines()[:5] + [line for line in lines if line not in told] + told[:40]:
                    print('#', line.lstrip('# '))
    print(f'1..{nr}')
    return nr_bad > 0


sys.exit(main())
