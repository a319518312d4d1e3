# SPDX-License-Identifier: MIT
"""common.py - what the tests of wrong releases share: compilers, a watched run, lines of TAP."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

BUILD, SOURCE = sys.argv[1], os.environ['LW_SOURCE']
LIBRARY = BUILD + '/preload/libleakwatch.so'
HEADERS = SOURCE + '/preload'
PAIRS = [(c, cxx) for c, cxx in (('gcc', 'g++'), ('clang', 'clang++')) if shutil.which(cxx)]
LEVELS = os.environ.get("LW_LEVELS", "-O0 -O2").split()
ENV = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'LEAKWATCH_OPTIONS')}
ENV['MALLOC_PERTURB_'] = '0'

work = tempfile.mkdtemp(prefix='leakwatch-wrong.')
checks = bad = runs = 0
lock = threading.RLock()


def check(name, good, *seen):
    """One line of TAP; what was seen instead follows a bad one."""
    global checks, bad
    with lock:
        checks += 1
        print(f'{"" if good else "not "}ok {checks} - {name}', flush=True)
        if not good:
            bad += 1
            for line in '\n'.join(str(s) for s in seen).split('\n')[:40]:
                print('#', line)
    return good


def each(function, items):
    """Calls function(*item) for each, two at a time: most of the time goes into compilers."""
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda item: function(*item), items):
            pass


def skip(name, why):
    global checks
    with lock:
        checks += 1
        print(f'ok {checks} - {name} # SKIP {why}')


def done():
    shutil.rmtree(work, ignore_errors=True)
    print(f'1..{checks}')
    sys.exit(bad > 0)


def write(name, text):
    path = os.path.join(work, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def build(out, *arguments):
    """The program, or None after a failed check that shows what the compiler said."""
    path = os.path.join(work, out)
    ran = subprocess.run([*arguments, '-o', path], cwd=work, capture_output=True, text=True, check=False)
    if ran.returncode:
        check(f'builds: {" ".join(arguments)}', False, ran.stderr)
        return None
    return path


class Run:
    """A program that has run under LeakWatch: status, out, err, report."""

    def __init__(self, program, *arguments, options='', env=None):
        global runs
        with lock:
            runs += 1 # a name of its own: the report of a killed process comes later, from the cleaner
            path = os.path.join(work, f'report-{runs}.json')
        settings = dict(ENV, LD_PRELOAD=LIBRARY, LEAKWATCH_OPTIONS=f'json={path}{":" * bool(options)}{options}')
        settings.update(env or {})
        ran = subprocess.run([program, *arguments], cwd=work, env=settings, capture_output=True, text=True,
                             errors='replace', timeout=120, check=False, stdin=subprocess.DEVNULL)
        self.status, self.out, self.err = ran.returncode, ran.stdout, ran.stderr
        self.report = {}
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                self.report = json.load(file)

    def events(self):
        """(what, line of the release, event): the line of the first frame that has one in the work folder."""
        out = []
        for event in self.report.get('mismatches', []) + self.report.get('errors', []):
            frames = event.get('free_frames', [])
            line = next((f['line'] for f in frames if work in (f.get('file') or '') and 'line' in f), None)
            out.append((event.get('what', 'mismatch'), line, event))
        return out

    def texts(self):
        return [f'{what} at {line}: {e.get("alloc_kind")} -> {e.get("free_kind")} hint {e.get("hint")}'
                for what, line, e in self.events()] + [self.err[:600]]
