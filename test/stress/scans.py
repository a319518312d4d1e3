#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Live searches for lost memory in servers under load: nothing accused falsely, nothing broken.

usage: scans.py BUILD-FOLDER [SCANS [PROGRAM ...]]     (30 redis nginx python); speaks TAP
Each program answers requests, whose answers are compared with what they must be, while it is asked again and again
with `leakwatch-snapshot --leaks`. What is lost stays lost: a site whose lost blocks become fewer was accused falsely.
Python is asked with PYTHONMALLOC=malloc, so that each of its objects is a block."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

PYTHON = r'''
import gc, json, random, sys, threading, zlib
class Node:
    def __init__(self, key, left): self.key, self.left, self.bag = key, left, {key: [key] * 3}
def answer(seed):
    rng = random.Random(seed); rows = {}; node = None
    for i in range(300):
        rows['k%d' % i] = ['t%d' % rng.randrange(50) for _ in range(4)]; node = Node(i, node)
    ring = [rows]; ring.append(ring)
    text = json.dumps({k: rows[k] for k in sorted(rows)})
    return zlib.crc32(json.dumps(json.loads(text)).encode()) ^ sum(n for n in range(node.key))
def sort():
    while True: sorted(random.random() for _ in range(2000))
threading.Thread(target=sort, daemon=True).start()
print('ready', flush=True)
for line in sys.stdin:
    print(answer(int(line)), flush=True)
'''


def python_answer(seed):
    room = {}
    exec(PYTHON.split('def sort')[0], room)  # pylint: disable=exec-used
    return room['answer'](seed)


class Redis:
    name = 'redis-server'

    def __init__(self, env, folder):
        path = folder + '/redis.sock'
        self.process = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no', '--dir', folder,
             '--io-threads', '2'], env=env, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.link = socket.socket(socket.AF_UNIX)
        for _ in range(500):
            try:
                self.link.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        self.answers = self.link.makefile('rb')

    def turn(self, i):
        key, value = b'k%d' % (i % 997), b'v' * (i % 400) + b'%d' % i
        self.link.sendall(b'*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n'
                          % (len(key), key, len(value), value, len(key), key))
        assert self.answers.readline() == b'+OK\r\n'
        assert int(self.answers.readline()[1:]) == len(value)
        assert self.answers.read(len(value) + 2)[:-2] == value

    def end(self):
        self.link.close()
        self.process.terminate()
        return self.process.wait()


class Nginx:
    name = 'nginx'

    def __init__(self, env, folder):
        os.mkdir(folder + '/root')
        self.body = b'leak' * 5000
        with open(folder + '/root/page', 'wb') as file:
            file.write(self.body)
        os.chmod(folder, 0o755)
        with open(folder + '/nginx.conf', 'w', encoding='utf-8') as file:
            file.write(f'daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n'
                       f'events {{}}\nhttp {{ access_log off; server {{ listen unix:{folder}/http.sock;'
                       f' root {folder}/root; gzip on; gzip_types *; }} }}\n')
        self.path = folder + '/http.sock'
        self.process = subprocess.Popen(['nginx', '-c', folder + '/nginx.conf'], env=env, stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        for _ in range(500):
            if os.path.exists(self.path):
                break
            time.sleep(0.05)

    def turn(self, i):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self.path)
            zipped = b'Accept-Encoding: gzip\r\n' if i % 2 else b''
            link.sendall(b'GET /page HTTP/1.0\r\nHost: x\r\n' + zipped + b'\r\n')
            answer = link.makefile('rb').read()
        head, body = answer.split(b'\r\n\r\n', 1)
        body = zlib.decompress(body, 31) if b'gzip' in head else body
        assert b'200 OK' in head and body == self.body

    def end(self):
        self.process.terminate()
        return self.process.wait()


class Python:
    name = 'python3'

    def __init__(self, env, _folder):
        self.process = subprocess.Popen([os.path.realpath('/usr/bin/python3'), '-c', PYTHON], env=dict(env, PYTHONMALLOC='malloc'),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == 'ready\n'
        self.right = [python_answer(seed) for seed in range(50)]

    def turn(self, i):
        self.process.stdin.write(f'{i % 50}\n')
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == self.right[i % 50]

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


class Load(threading.Thread):
    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.nr, self.is_over, self.error = server, 0, False, ''

    def run(self):
        try:
            while not self.is_over:
                self.server.turn(self.nr)
                self.nr += 1
                time.sleep(0.001)
        except (AssertionError, OSError, ValueError) as error:
            self.error = f'answer {self.nr} is wrong: {error!r}'


def lost_by_site(text):
    report = json.loads(text)
    found = {}
    for site in report['sites']:
        blocks = site['blocks'] if site['verdict'] in ('lost', 'indirect') else site.get('lost_blocks', 0) + site.get('indirect_blocks', 0)
        if blocks:
            found[site['id']] = (blocks, ' < '.join(str(f.get('function')) for f in site['frames'][:4]))
    return report.get('scan', {}), found


def scan_often(build, kind, nr_scans, folder):
    env = dict(os.environ, LD_PRELOAD=build + '/preload/libleakwatch.so', LEAKWATCH_OPTIONS='report=never')
    server = kind(env, folder)
    load = Load(server)
    load.start()
    before, false, nr_done, nr_unsure, longest_ms = {}, [], 0, 0, 0
    for _ in range(nr_scans):
        out = subprocess.run([build + '/snapshot/leakwatch-snapshot', '--leaks', '--json', str(server.pid)],
                             capture_output=True, text=True, check=False)
        if out.returncode not in (0, 1) or load.error:
            break
        scan, found = lost_by_site(out.stdout)
        nr_done += scan.get('state') == 'done'
        nr_unsure += bool(scan.get('approximate'))
        longest_ms = max(longest_ms, scan.get('pause_s', 0) * 1000)
        if not scan.get('approximate'): # else some are spared, other ones each time
            false += [f'{name}: {nr} lost, then {found.get(site, (0,))[0]}' for site, (nr, name) in before.items()
                      if found.get(site, (0,))[0] < nr]
            before = found
    load.is_over = True
    load.join(30)
    status = server.end()
    lost = sum(nr for nr, _ in before.values())
    good = nr_done == nr_scans and not false and not load.error and status in (0, -15)
    print(f'{kind.name}: {nr_done} of {nr_scans} searches, {len(false)} false accusations, {lost} blocks lost at the end, '
          f'{nr_unsure} approximate, longest pause {longest_ms:.1f} ms, {load.nr} right answers, ends with {status}'
          f'{" " + load.error}', flush=True)
    for line in false[:10] + [f'lost: {nr} in {name}' for nr, name in before.values()][:10]:
        print(f'# {line}')
    return good


def main():
    build, nr_scans = os.path.realpath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 30
    kinds = {'redis': Redis, 'nginx': Nginx, 'python': Python}
    nr = bad = 0
    for name in sys.argv[3:] or kinds:
        nr += 1
        if not shutil.which(kinds[name].name):
            print(f'ok {nr} - {kinds[name].name} # SKIP is not here')
            continue
        with tempfile.TemporaryDirectory(prefix='leakwatch-test.') as folder:
            good = scan_often(build, kinds[name], nr_scans, folder)
        bad += not good
        print(f'{"ok" if good else "not ok"} {nr} - {kinds[name].name}', flush=True)
    print(f'1..{nr}')
    return bad > 0


sys.exit(main())
