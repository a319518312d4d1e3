# SPDX-License-Identifier: MIT
"""The programs that run.py measures tools on, and their inputs, which are the same each time.

They are of three kinds: programs people use, small ones that do one thing to the heap, and programs so short
that only their start and end count. make_inputs() writes what they read into a folder, workloads() gives the
commands. A server's CPU time is its own; its client is not under the tool."""
import dataclasses
import json
import os
import random
import shutil
import subprocess

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


@dataclasses.dataclass
class Workload:
    command: list
    client: list = None        # commands that keep a server busy and then end it, one after the other
    socket: str = None         # where the server listens when it is ready
    env: dict = dataclasses.field(default_factory=dict)
    is_long: bool = True       # long enough for somebody to look at it
    is_usual: bool = True      # measured if nothing is asked for
    programs: tuple = ()       # what must be installed besides the command


def script(nr, word):
    return ['sh', '-c', f'i=0; while [ $i -lt {nr} ]; do {word}; i=$((i+1)); done']


def links_jemalloc(program):
    ran = subprocess.run(['ldd', shutil.which(program) or program], capture_output=True, text=True, check=False)
    return 'libjemalloc' in ran.stdout


def redis(folder):
    """A server with libc's malloc: where it is linked with another one, libc comes first in the order of symbols."""
    socket = folder + '/redis.sock'
    bench = ['redis-benchmark', '-s', socket, '-n', '250000', '-r', '50000', '-P', '16', '-c', '20', '-d', '64',
             '-t', 'set,get,lpush', '-q']
    return Workload(
        ['redis-server', '--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', folder,
         '--daemonize', 'no'],
        client=[bench, ['redis-cli', '-s', socket, 'shutdown', 'nosave']], socket=socket,
        env={'LD_PRELOAD': 'libc.so.6'} if links_jemalloc('redis-server') else {},
        programs=('redis-benchmark', 'redis-cli'))


def compiler(folder):
    cc1plus = subprocess.run(['g++', '-print-prog-name=cc1plus'], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip()
    return Workload([cc1plus, '-quiet', '-imultiarch', 'x86_64-linux-gnu', '-D_GNU_SOURCE', '-O0', folder + '/work.cc',
                     '-o', '/dev/null'])


def workloads(build, folder):
    """name -> Workload, in the order in which they are measured"""
    programs, churn = build + '/test/bench/bench-programs', build + '/test/bench/bench-churn'
    table = {
        'python3': Workload(['/usr/bin/python3', folder + '/work.py'], env={'PYTHONMALLOC': 'malloc'}),
        'sqlite3': Workload(['sqlite3', ':memory:', f'.read {folder}/t.sql']),
        'cc1plus': compiler(folder) if shutil.which('g++') else Workload(['g++']),
        'jq': Workload(['jq', JQ, folder + '/rows.json']),
        'perl': Workload(['perl', folder + '/work.pl', folder + '/words.txt']),
        'git log': Workload(['git', f'--git-dir={folder}/git', '--no-pager', 'log', '-p', '--stat', '-n', '400', 'trunk']),
        'redis': redis(folder),
        'churn, 1 thread': Workload([churn, '600000', '1']),
        'churn, 2 threads': Workload([churn, '600000', '2']),
        'swap, 2 threads': Workload([programs, 'swap', '1000000', '2']),
    }
    for frames in 4, 16, 32, 64:
        table[f'pairs at {frames} frames'] = Workload([programs, 'pairs', str(frames), '2000000'], is_long=False,
                                                      is_usual=frames in (16, 64))
    table['true'] = Workload(['/bin/true'], is_long=False)
    table['200 processes'] = Workload(script(200, '/bin/true'), is_long=False)
    table['200 processes that allocate'] = Workload(script(200, '/usr/bin/expr 1 : 1 >&2'), is_long=False, is_usual=False)
    table['50 subshells'] = Workload(script(50, '(: $i)'), is_long=False, is_usual=False)
    table['10,000 sites'] = Workload([programs, 'sites', '10000'], is_long=False, is_usual=False)
    return table


def missing(workload):
    """What is not installed of what it needs, or None."""
    for program in [workload.command[0], *workload.programs]:
        if not shutil.which(program):
            return os.path.basename(program)
    return None
