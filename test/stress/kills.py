#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares reports with what the programs counted themselves. usage: kills.py REPORTS TALLIES

TALLIES/PID holds two struct tally of victim-counted.c, REPORTS/PID.json the report of that process.
What is counted by both must lie between the operations done and those begun."""
import json
import os
import struct
import sys

MOST_BYTES = 16 + 999  # of one block


def read_tally(path):
    with open(path, 'rb') as file:
        data = file.read(128)
    if len(data) < 128:
        return []
    both = struct.unpack('<8Q', data[:64]), struct.unpack('<8Q', data[64:])
    return [a + b for a, b in zip(*both)][:6]


def read_report(path):
    with open(path, encoding='utf-8') as file:
        report = json.load(file)
    taken = [site for site in report['sites']
             if any(frame.get('function') == 'take' for frame in site['frames'])]
    totals = {key: sum(site[key] for site in taken)
              for key in ('bytes', 'blocks', 'total_bytes', 'total_blocks')}
    return report, totals


def faults(pid, reports, tallies):
    tally = read_tally(os.path.join(tallies, pid))
    if len(tally) != 6:
        return  # killed before it counted anything
    begun, done, frees_begun, frees_done, allocated, freed = tally
    report, totals = read_report(os.path.join(reports, pid + '.json'))
    frees = totals['total_blocks'] - totals['blocks']
    freed_bytes = totals['total_bytes'] - totals['bytes']
    slack = 2 * MOST_BYTES * 2  # two threads, each with one in flight, and one not yet added up
    if report['state'] != 'killed' or report.get('signal') not in (9, None):
        yield 'state %s, signal %s' % (report['state'], report.get('signal'))
    if report['summary']['dropped']:
        yield '%d dropped' % report['summary']['dropped']
    if not done <= totals['total_blocks'] <= begun:
        yield '%d allocations, counted %d..%d' % (totals['total_blocks'], done, begun)
    if not frees_done <= frees <= frees_begun:
        yield '%d frees, counted %d..%d' % (frees, frees_done, frees_begun)
    if not allocated <= totals['total_bytes'] <= allocated + slack:
        yield '%d bytes allocated, counted %d' % (totals['total_bytes'], allocated)
    if not freed <= freed_bytes <= freed + slack:
        yield '%d bytes freed, counted %d' % (freed_bytes, freed)


def main():
    reports, tallies = sys.argv[1:3]
    bad = [(pid, fault) for pid in os.listdir(tallies) if pid.isdigit()
           for fault in faults(pid, reports, tallies)]
    for pid, fault in bad:
        print('%s: %s' % (pid, fault))
    sys.exit(1 if bad else 0)


if __name__ == '__main__':
    main()
