#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Deaths of all kinds, mixed, two at a time. usage: deaths.py LIBRARY VICTIM FOLDER NUMBER

Each is to end as it would without the library, and to leave a report in FOLDER/PID.
Only what is wrong is printed; then one line with the figures."""
import os
import random
import signal
import sys
import time

# how -> status as the shell sees it (negative: signal), 0 or 1: is there a report of its own pid?
WAYS = {
    'exit': (3, 1), '_exit': (3, 1), 'quick': (3, 1), 'group': (3, 1), 'kill': (-signal.SIGKILL, 1),
    'term': (-signal.SIGTERM, 1), 'segv': (-signal.SIGSEGV, 1), 'abort': (-signal.SIGABRT, 1),
    'exec': (-signal.SIGKILL, 1), 'exec2': (-signal.SIGKILL, 1), 'other': (-signal.SIGKILL, 1), 'fork': (3, 1),
    'orphan': (-signal.SIGKILL, 1), 'vfork': (3, 1), 'busy': (-signal.SIGKILL, 1), 'main': (3, 1),
}
REPORT_S = 20  # and as long as the deaths took: reports are made on what processors they leave


def start(library, victim, folder, how):
    env = {'PATH': os.environ['PATH'], 'LD_PRELOAD': library, 'LEAKWATCH_OPTIONS': f'log_path={folder}/%p'}
    return os.posix_spawn(victim, [victim, how], env,
                          file_actions=[(os.POSIX_SPAWN_OPEN, 2, '/dev/null', os.O_WRONLY, 0)])


def main():
    library, victim, folder, number = sys.argv[1:4] + [int(sys.argv[4])]
    dice, running, due, nr_bad = random.Random(number), {}, set(), 0
    began = time.monotonic()
    for i in range(number + 2):
        if i < number:
            how = list(WAYS)[i] if i < len(WAYS) else dice.choice(list(WAYS))
            running[start(library, victim, folder, how)] = how
        if running and (len(running) >= 2 or i >= number):
            pid, status = os.wait()
            how = running.pop(pid, None)
            if how is None:
                continue
            status = os.waitstatus_to_exitcode(status)
            if status != WAYS[how][0]:
                print(f'{how}: status {status}, not {WAYS[how][0]}')
                nr_bad += 1
            due.add((pid, how))
    took = time.monotonic() - began
    while any(not os.path.exists(f'{folder}/{pid}') for pid, _ in due) and time.monotonic() < began + 2 * took + REPORT_S:
        time.sleep(0.05)
    missing = [how for pid, how in due if not os.path.exists(f'{folder}/{pid}')]
    for how in sorted(set(missing)):
        print(f'{how}: {missing.count(how)} of {sum(h == how for _, h in due)} have no report')
    nr_bad += len(missing)
    print(f'{number} deaths in {took:.1f} s, all reported {time.monotonic() - began - took:.1f} s later')
    sys.exit(1 if nr_bad else 0)


main()
