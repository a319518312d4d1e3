#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server under a steady load, for a long time, with viewers that come and go.

usage: soak.py BUILD-FOLDER [MINUTES [VIEWERS [REQUESTS-A-SECOND]]]     (20 100 2000); speaks TAP
redis-server runs under LeakWatch and answers commands over few keys, so that its own memory settles. One
viewer after the other watches it for a while; each fifth is killed. While nobody watches, the library's
own memory is read: what is resident of the mappings that are marked as not to be dumped, which only ours are,
of the shared segment and of the library's data. The first fifth of the viewers is warm-up: then it must not grow."""
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MOST_GROWTH_KIB = 64  # a few pages: a thread's rows, or a place in the tables not touched before


def smaps(pid):
    """Resident KiB of the whole process, and of what is LeakWatch's in it."""
    total = own = rss = 0
    path = ''
    with open(f'/proc/{pid}/smaps') as file:
        for line in file:
            word = line.split()
            if not word[0].endswith(':'):
                path = line
            elif word[0] == 'Rss:':
                rss = int(word[1])
                total += rss
            elif word[0] == 'VmFlags:' and (
                    'dd' in word or 'SYSV' in path or ('libleakwatch.so' in path and ' rw' in path)):
                own += rss
    return total, own


def helpers(pid):
    with open(f'/proc/{pid}/task/{pid}/children') as file:
        return file.read().split()


class Load(threading.Thread):
    """So many commands a second, in groups of 20 ms; counts the answers."""

    def __init__(self, path, per_second):
        super().__init__(daemon=True)
        self.path, self.each, self.nr_answers, self.is_over = path, per_second // 50, 0, False

    def command(self):
        key = f'key{random.randrange(500)}'
        word = random.choice((
            ('SET', 's' + key, 'v' * random.randrange(20, 200)), ('GET', 's' + key), ('DEL', 's' + key),
            ('LPUSH', 'l' + key, 'v' * 50), ('LTRIM', 'l' + key, '0', '9'), ('SADD', 'm' + key, str(random.randrange(50))),
            ('SPOP', 'm' + key), ('HSET', 'h' + key, str(random.randrange(20)), 'v' * 30)))
        return b''.join([b'*%d\r\n' % len(word)] + [b'$%d\r\n%s\r\n' % (len(w), w.encode()) for w in word])

    def run(self):
        link = socket.socket(socket.AF_UNIX)
        link.connect(self.path)
        answers = link.makefile('rb')
        due = time.monotonic()
        while not self.is_over:
            link.sendall(b''.join(self.command() for _ in range(self.each)))
            for _ in range(self.each):
                line = answers.readline()
                if line[:1] == b'$' and line[1:2] != b'-':
                    answers.read(int(line[1:]) + 2)
                elif not line or line[:1] == b'-':
                    sys.exit(f'redis-server answers {line!r}')
                self.nr_answers += 1
            due = max(due + 0.02, time.monotonic() - 0.5)
            time.sleep(max(0, due - time.monotonic()))


def watch(snapshot, pid, stay_s, is_killed, folder):
    """One viewer; the last tick it saw."""
    with open(folder + '/ticks.json', 'wb+') as ticks, open(folder + '/viewer.err', 'ab') as err:
        with subprocess.Popen([snapshot, '--json', '--interval=0.5', str(pid)], stdout=ticks, stderr=err) as viewer:
            time.sleep(stay_s)
            viewer.send_signal(signal.SIGKILL if is_killed else signal.SIGTERM)
        ticks.seek(0)
        lines = [line for line in ticks if line.endswith(b'\n')]
    return json.loads(lines[-1]) if lines else {'how': 'saw nothing', 'sites': []}


def settle(pid):
    """Waits until the helper has gone; False: it stays."""
    end = time.monotonic() + 30
    while helpers(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def run(build, minutes, nr_viewers, per_second, folder):
    env = dict(os.environ, LD_PRELOAD=build + '/preload/libleakwatch.so', LEAKWATCH_OPTIONS='report=never')
    path = folder + '/redis.sock'
    server = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no',
                               '--dir', folder], env=env, stdout=subprocess.DEVNULL)
    while not os.path.exists(path):
        time.sleep(0.1)
    load = Load(path, per_second)
    load.start()
    began = time.monotonic()
    seen = []
    for i in range(nr_viewers):
        slot_s = minutes * 60 / nr_viewers
        last = watch(build + '/snapshot/leakwatch-snapshot', server.pid, slot_s / 2, i % 5 == 4, folder)
        is_settled = settle(server.pid)
        total, own = smaps(server.pid)
        grown = [site.get('function') for site in last['sites'] if site['verdict'] == 'growing']
        seen.append((own, last['how'], is_settled, grown))
        with open(f'/proc/{server.pid}/maps') as file:
            nr_maps = sum(1 for _ in file)
        print(f'# {time.monotonic() - began:7.1f} s viewer {i + 1:3} {last["how"]} own {own} KiB of {total}'
              f' maps {nr_maps} answers {load.nr_answers} growing {grown}', flush=True)
        time.sleep(max(0, began + (i + 1) * slot_s - time.monotonic()))
    took_s = time.monotonic() - began
    load.is_over = True
    load.join()
    server.terminate()
    return seen, server.wait(), load.nr_answers / took_s, took_s


def main():
    build = os.path.realpath(sys.argv[1])
    minutes, nr_viewers, per_second = (float(sys.argv[2]) if len(sys.argv) > 2 else 20,
                                       int(sys.argv[3]) if len(sys.argv) > 3 else 100,
                                       int(sys.argv[4]) if len(sys.argv) > 4 else 2000)
    if not shutil.which('redis-server'):
        print('1..0 # SKIP no redis-server')
        return 0
    with tempfile.TemporaryDirectory(prefix='leakwatch-soak.') as folder:
        seen, status, rate, took_s = run(build, minutes, nr_viewers, per_second, folder)
        with open(folder + '/viewer.err') as file:
            errors = file.read()
    own = [kib for kib, _, _, _ in seen[nr_viewers // 5:]]
    third = max(1, len(own) // 3)
    first, last = statistics.median(own[:third]), statistics.median(own[-third:])
    nr_live = sum(how == '[live]' for _, how, _, _ in seen)
    checks = (
        (last <= first + MOST_GROWTH_KIB, f'own memory does not grow: {first:.0f} KiB, then {last:.0f}; most {max(own)}'),
        (nr_live >= nr_viewers * 0.9, f'{nr_live} of {nr_viewers} viewers were served live'),
        (all(s for _, _, s, _ in seen), 'each helper goes'),
        (sum(bool(g) for _, _, _, g in seen[nr_viewers // 5:]) <= nr_viewers // 100, 'nothing is accused of growing'),
        (not errors, 'no viewer complains ' + errors[:200]),
        (status == 0, f'redis-server ends with {status}'),
        (rate >= per_second * 0.5, f'{rate:.0f} answers a second for {took_s:.0f} s'))
    for i, (is_good, what) in enumerate(checks, 1):
        print(f'{"ok" if is_good else "not ok"} {i} - {what}')
    print(f'1..{len(checks)}')
    return not all(is_good for is_good, _ in checks)


sys.exit(main())
