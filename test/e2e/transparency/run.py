#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real programs behave the same with and without LeakWatch: output, status, descriptors, environment,
signal masks, working folder. Speaks TAP.

usage: run.py BUILD-FOLDER [--only NAME,...] [--limits]
With --limits each runs with the lowest limits of a list under which it does, alone, what it does without.
Each program runs alone, under LD_PRELOAD and under the launcher, three times the same command; the
reports go to files, and that there is one with a sum says that the program was really watched.
Programs print what they see of themselves (probe.*); servers are looked at from outside, in /proc."""
import argparse
import difflib
import glob
import http.client
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = 'alone', 'preloaded', 'launched'
PATIENCE_S = 30

# All at once, from harsh to mild: bytes of a file, descriptors, address space, processes over those there are.
# Our cleaner is a process of the same user, our tables want address space: so of these a little is left.
LEVELS = [(0, 16, 128 << 20, 8), (1 << 16, 16, 128 << 20, 8), (0, 64, 2 << 30, 32), (1 << 30, 256, 8 << 30, 64)]

BASH = r'''
trap 'echo trapped' USR1; kill -USR1 $$
cd /usr; echo fds /proc/self/fd/*
while read -r key value; do case $key in Sig[PBIC]*|Umask*|Threads*) echo $key $value;; esac; done </proc/self/status
env | grep -v -e ^LD_PRELOAD= -e ^LEAKWATCH_OPTIONS= | sort; ls -l /proc/self/fd | wc -l
for i in {1..2000}; do x[$i]="$i $x[$((i-1))]"; done; echo ${#x[*]} ${x[1999]:0:40}
echo "$(echo one | tr a-z A-Z)" "$(sh -c 'echo two; echo three >&2; exit 4' 2>&1)" $?
printf '%s\n' {z..a} | sort | head -n 3; exit 7'''

GIT = r'''set -e; git init -q -b trunk repo; cd repo
for i in 1 2 3 4 5 6; do seq $((i * 100)) >file$((i % 3)); git add .; git commit -q -m "change $i"; done
git log -p --stat | cat; git grep -c 7; git diff HEAD~3 --shortstat; git branch side HEAD~2
git checkout -q side; seq 5 >other; git add .; git commit -q -m side; git merge -q -m joined trunk
git -c gc.auto=0 gc -q; git fsck; git log --format=%H; git show HEAD:other; git rev-parse nothing-here'''

GCC = r'''set -e
cat >a.c <<'END'
#include <stdio.h>
#include <string.h>
struct pair { int a, b; };
int sum(const struct pair *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i].a * p[i].b; return s; }
int main(void) { struct pair p[3] = {{1, 2}, {3, 4}, {5, 6}}; printf("%d\n", sum(p, 3)); return sum(p, 3) - 40; }
END
cat >b.cc <<'END'
#include <map>
#include <string>
#include <vector>
#include <iostream>
template<int N> struct Row { std::map<std::string, std::vector<int>> m; int f() { m[std::to_string(N)].push_back(N); return m.size() + Row<N - 1>().f(); } };
template<> struct Row<0> { int f() { return 0; } };
int main() { std::cout << Row<6>().f() << std::endl; }
END
gcc -O2 -S -o - a.c; gcc -O2 a.c -o a; g++ -O1 b.cc -o b; md5sum a b; ./b; gcc -c nothing.c || echo status $?; ./a'''

SQL = r'''.headers on
create table t(id integer primary key, a int, b text);
with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i,(i*7919)%1009,'name-'||i from n;
create index ia on t(a);
select count(*), sum(length(b)) from t where a % 7 = 3;
select a, count(*), group_concat(id) from t group by a limit 4;
delete from t where a % 3 = 0;
select count(*) from t x join t y on x.a = y.a where x.id < 300;
select name from fsdir('/proc/self/fd') order by 1;
select readfile('/proc/self/status') like '%SigBlk:_0000000000000000%';
.exit 4
'''

JQ = r'''[range(6000)|{id:., name:"user\(. * 7919 % 10007)", tags:[(. % 7|tostring),(. % 11|tostring)]}]
| group_by(.tags[0]) | map({k:.[0].tags[0], n:length, s:(map(.name|length)|add)}),
(env|keys|map(select(. != "LD_PRELOAD" and . != "LEAKWATCH_OPTIONS"))), ("x"|ascii_downcase)'''

NGINX = '''daemon off; user %(user)s; pid %(dir)s/pid; error_log %(dir)s/error.log; worker_processes 2;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %(dir)s/t1; proxy_temp_path %(dir)s/t2;
fastcgi_temp_path %(dir)s/t3; uwsgi_temp_path %(dir)s/t4; scgi_temp_path %(dir)s/t5;
server { listen unix:%(dir)s/socket; root %(dir)s; default_type text/plain; } }'''


def python(*arguments):
    return ['/usr/bin/python3', HERE + '/probe.py', *arguments]


# name -> (command, more environment, text on stdin)
PROGRAMS = {
    'bash': (['bash', '--norc', '-c', BASH], {}, ''),
    'python3': (python(), {}, ''),
    'python3 with PYTHONMALLOC=malloc': (python(), {'PYTHONMALLOC': 'malloc'}, ''),
    'perl': (['perl', HERE + '/probe.pl'], {'PERL_HASH_SEED': '0'}, ''),
    'sqlite3': (['sqlite3', '-batch', ':memory:'], {}, SQL),
    'jq': (['jq', '-nc', JQ], {}, ''),
    'jq reading itself': (['jq', '-Rr', 'select(test("^(Sig(Blk|Ign|Cgt)|Umask|Threads)"))', '/proc/self/status'], {}, ''),
    'git': (['sh', '-c', GIT], {'GIT_AUTHOR_DATE': '1600000000 +0000', 'GIT_COMMITTER_DATE': '1600000000 +0000',
                                'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@example.org', 'GIT_COMMITTER_NAME': 'A',
                                'GIT_COMMITTER_EMAIL': 'a@example.org', 'GIT_CONFIG_NOSYSTEM': '1'}, ''),
    'gcc': (['sh', '-c', GCC], {}, ''),
    'node': (['node', HERE + '/probe.js'], {}, ''),
}
SERVERS = {'redis-server': 'redis-cli', 'nginx': None}
ALLOCATORS = {'jemalloc': 'libjemalloc.so', 'tcmalloc': 'libtcmalloc_minimal.so', 'mimalloc': 'libmimalloc.so'}


has_limits = False


class Tap:
    def __init__(self):
        self.nr, self.bad = 0, 0

    def ok(self, good, name, remarks=()):
        self.nr += 1
        self.bad += not good
        print(f'{"" if good else "not "}ok {self.nr} - {name}')
        for line in () if good else remarks:
            print('#', line[:300])
        sys.stdout.flush()

    def skip(self, name, why):
        self.nr += 1
        print(f'ok {self.nr} - {name} # SKIP {why}')


class Place:
    """A folder for one run, with the environment of a mode."""

    def __init__(self, build, mode, more, level=None, patience_s=PATIENCE_S):
        self.build, self.mode, self.level, self.patience_s = build, mode, level, patience_s
        self.nr_processes = sum(path[6:].isdigit() for path in glob.glob('/proc/[0-9]*'))
        self.folder = tempfile.mkdtemp(prefix='leakwatch-transparency.')
        self.run = self.folder + '/run'
        self.reports = self.folder + '/reports'
        os.mkdir(self.run)
        os.mkdir(self.reports)
        self.env = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': self.run, 'LC_ALL': 'C.UTF-8', **more}
        self.settings = f'log_path={self.reports}/%p.txt:report=always:verbose=0'
        if mode == 'preloaded':
            preload = [build + '/preload/libleakwatch.so', self.env.get('LD_PRELOAD')]
            self.env.update(LD_PRELOAD=' '.join(filter(None, preload)), LEAKWATCH_OPTIONS=self.settings)

    def lower(self):
        """In the child: the limits of the level."""
        if not self.level:
            return
        file_bytes, descriptors, space, processes = self.level
        for which, value in ((resource.RLIMIT_FSIZE, file_bytes), (resource.RLIMIT_NOFILE, descriptors),
                             (resource.RLIMIT_NPROC, processes + self.nr_processes), (resource.RLIMIT_AS, space)):
            resource.setrlimit(which, (value, value))

    def command(self, command):
        if self.mode != 'launched':
            return command
        options = ['--' + option for option in self.settings.split(':') if not option.startswith('verbose')]
        return [self.build + '/preload/leakwatch', *options, '--', *command]

    def shown(self, text):
        """What differs between any two runs is made the same."""
        if self.level:  # what the process that was started says for itself, when there is no room for us or the file
            text = re.sub(r'\Aleakwatch: no memory for our tables.*\n', '', text)
            text = re.sub(r'^leakwatch: cannot write .*: File too large\n(LeakWatch: (.*\n)*?SUMMARY: .*\n)?', '', text,
                          flags=re.M)
        return re.sub(r'\b(pipe|socket):\[\d+\]', r'\1', text.replace(self.folder, 'FOLDER'))

    def is_watched(self):
        for path in glob.glob(self.reports + '/*.txt'):
            with open(path, errors='replace') as file:
                if 'SUMMARY: LeakWatch: ' in file.read():
                    return True
        return self.mode == 'alone'

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def run_program(place, command, text):
    done = subprocess.run(place.command(command), cwd=place.run, env=place.env, input=text.encode(), preexec_fn=place.lower,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=place.patience_s, check=False)
    return ['status', str(done.returncode), 'stdout', *place.shown(done.stdout.decode(errors='replace')).splitlines(),
            'stderr', *place.shown(done.stderr.decode(errors='replace')).splitlines()]


def outside_view(place, pid):
    """What /proc says of a running process. Not its environment: servers write their title over it."""
    proc = f'/proc/{pid}/'
    seen = ['cwd ' + os.readlink(proc + 'cwd')]
    for fd in sorted(os.listdir(proc + 'fd'), key=int):
        seen.append(f'fd {fd} {os.readlink(proc + "fd/" + fd)}')
    with open(proc + 'status') as file:
        seen += [line.strip() for line in file if re.match(r'Sig(Blk|Ign|Cgt)|Umask|Threads', line)]
    return [place.shown(line) for line in seen]


def quiet_view(place, pid):
    """outside_view() once the last client's connection is closed, which the server does when it likes."""
    views = []
    for _ in range(10):
        views.append(outside_view(place, pid))
        time.sleep(0.03)
    return min(views, key=len)


def children_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        return sorted(int(child) for child in file.read().split())


def wait_until(condition, process):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f'the server did not come up (status {process.poll()})')
        time.sleep(0.02)  # a server says nothing that could be waited for


def redis_dialogue(place, process):
    path = place.run + '/socket'

    def ask(*words):
        return subprocess.run(['redis-cli', '-s', path, *words], env={'PATH': os.environ['PATH']}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S).stdout

    wait_until(lambda: os.path.exists(path) and 'PONG' in ask('ping'), process)
    seen = [ask('set', 'key', 'value'), ask('get', 'key'), ask('eval', 'local s = 0 for i = 1, 1000 do '
            'redis.call("rpush", "list", string.rep("x", i % 90)) s = s + i end return s', '0'),
            ask('llen', 'list'), ask('lrange', 'list', '88', '91'), ask('debug', 'digest-value', 'list'),
            ask('flushall'), ask('dbsize')]
    seen += quiet_view(place, process.pid)
    ask('shutdown', 'nosave')
    return seen


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self.host)


def nginx_dialogue(place, process):
    path = place.run + '/socket'
    wait_until(lambda: os.path.exists(path) and len(children_of(process.pid)) == 2, process)
    seen = []
    for name in '/page.txt', '/missing', '/page.txt':
        connection = UnixConnection(path)
        connection.request('GET', name)
        answer = connection.getresponse()
        body = answer.read()
        seen.append(f'{name} {answer.status} {len(body)} {hash(body) == hash(PAGE)}')
        connection.close()
    seen += quiet_view(place, process.pid)
    for child in children_of(process.pid):
        seen += [line for line in outside_view(place, child) if not line.startswith('fd ')]
    process.send_signal(3)
    return seen


PAGE = b''.join(b'line %d of the page\n' % i for i in range(5000))


def run_server(place, name):
    if name == 'redis-server':
        command = ['redis-server', '--port', '0', '--unixsocket', place.run + '/socket', '--save', '',
                   '--logfile', '/dev/null', '--dir', place.run]
        dialogue = redis_dialogue
    else:
        with open(place.run + '/page.txt', 'wb') as file:
            file.write(PAGE)
        with open(place.run + '/conf', 'w') as file:
            file.write(NGINX % {'dir': place.run, 'user': 'root' if os.getuid() == 0 else 'nobody'})
        command = ['nginx', '-p', place.run, '-e', place.run + '/error.log', '-c', place.run + '/conf']
        dialogue = nginx_dialogue
    process = subprocess.Popen(place.command(command), cwd=place.run, env=place.env, preexec_fn=place.lower, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        seen = dialogue(place, process)
        return seen + [f'status {process.wait(PATIENCE_S)}']
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def run_in(place, run):
    """What it shows, and whether it was watched; with lowered limits a report may have no place."""
    try:
        seen = run(place)
        return seen, place.is_watched() or place.level is not None
    except (subprocess.TimeoutExpired, RuntimeError, OSError, subprocess.SubprocessError) as error:
        return [f'{type(error).__name__}: {error}'], True
    finally:
        place.close()


def find_level(build, more, run):
    """The harshest under which it does what it does without."""
    began = time.monotonic()
    free, _ = run_in(Place(build, 'alone', more), run)
    patience_s = min(PATIENCE_S, 2 + 4 * (time.monotonic() - began))  # there are programs that hang without memory
    for level in LEVELS:
        if run_in(Place(build, 'alone', more, level, patience_s), run)[0] == free:
            return level[0], level[1], 2 * level[2], level[3]
    return None


def compare(tap, build, name, more, run):
    reference = level = None
    if has_limits:
        level = find_level(build, more, run)
        if not level:
            tap.skip(name, 'it does not run under any of the limits')
            return
        name += ' under %d/%d/%dM/%d' % (level[0], level[1], level[2] >> 20, level[3])
    for mode in MODES:
        seen, is_watched = run_in(Place(build, mode, more, level), run)
        if mode == 'alone':
            reference = seen
            if seen[0].endswith('Error') or len(seen) < 2:
                tap.ok(False, f'{name} runs alone', seen)
                return
            continue
        remarks = list(difflib.unified_diff(reference, seen, 'alone', mode, n=1, lineterm=''))
        tap.ok(not remarks and is_watched, f'{name}, {mode}', remarks[:40] + ['was watched: %s' % is_watched])


def find_library(name):
    listing = subprocess.run(['/sbin/ldconfig', '-p'], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r'^\s*%s\S* .*=> (\S+)' % re.escape(name), listing, re.M)
    return found and found[1]


def main():
    parser = argparse.ArgumentParser(description='see the head of this file')
    parser.add_argument('build')
    parser.add_argument('--only', type=lambda names: names.split(','))
    parser.add_argument('--limits', action='store_true')
    args = parser.parse_args()
    global has_limits
    has_limits = args.limits
    build, tap = os.path.abspath(args.build), Tap()
    os.environ['PATH'] = '/usr/sbin:/usr/bin:/sbin:/bin'

    def is_wanted(name, program):
        if args.only and name.split()[0] not in args.only:
            return False
        if not shutil.which(program):
            tap.skip(name, f'{program} is not installed')
            return False
        return True

    for name, (command, more, text) in PROGRAMS.items():
        if is_wanted(name, name.split()[0]):
            compare(tap, build, name, more, lambda place: run_program(place, command, text))
    for name, client in SERVERS.items():
        if is_wanted(name, name) and (not client or is_wanted(name, client)):
            compare(tap, build, name, {}, lambda place: run_server(place, name))
    for name, library in ALLOCATORS.items():
        path = find_library(library)
        if args.only and name not in args.only:
            continue
        if not path:
            tap.skip(name, f'{name} is not installed')
            continue
        for program in 'victim-reuse', 'victim-throw':
            compare(tap, build, f'{name} under {program}', {'LD_PRELOAD': path},
                    lambda place: run_program(place, [f'{build}/test/victims/{program}'], ''))
        if is_wanted(name, 'python3'):
            compare(tap, build, f'{name} under python3', {'LD_PRELOAD': path, 'PYTHONMALLOC': 'malloc'},
                    lambda place: run_program(place, python(), ''))
    print(f'1..{tap.nr}')
    sys.exit(tap.bad != 0)


main()
