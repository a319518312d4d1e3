#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers one question about JSON reports, for lib.sh. The status is the answer; the facts go to stdout.

usage: judge.py FOLDER QUESTION ARGUMENTS...
  leak BYTES BLOCKS FUNCTION   the unfreed blocks of FUNCTION, over all its sites (* is any number)
  childleak ...                the same, over the reports of child processes
  clean FUNCTION               FUNCTION exists in no site that counts as a leak
  nothing                      no site counts as a leak
  sites N FUNCTION             so many different sites
  at LINE FUNCTION             one of its sites is at this line of its source
  deep FUNCTION CALLER...      a site of FUNCTION has these callers next, in this order
  kind KIND FUNCTION           its sites are of this kind of allocation
  reports N                    so many reports were written
  field NAME VALUE             a member of the report or its summary has this value
  verdict VERDICT FUNCTION     all its sites have this verdict
  whole                        nothing was dropped
  part VERDICT BYTES BLOCKS FUNCTION   so much of FUNCTION has this verdict
  mismatches N                 so many mismatched releases and errors are reported
FOLDER holds the reports of one run. The report of a process whose parent has none in FOLDER is the
run's own, the others are children's. A site belongs to the innermost frame inside a victim."""
import glob
import json
import os
import re
import sys


def plain(function):
    """The name of a function without parameters, template arguments and compiler's suffixes."""
    name = (function or '?').replace('(anonymous namespace)::', '')
    name = re.sub(r'\(.*', '', name)
    while re.search(r'<[^<>]*>', name):
        name = re.sub(r'<[^<>]*>', '', name)
    return re.sub(r'\.(part|isra|constprop|cold|lto_priv).*', '', name).split(' ')[-1]


def is_victims(frame):
    for path in frame.get('file'), frame.get('module'):
        if re.match(r'(lib)?victim-|demo', os.path.basename(path or '')):
            return True
    return False


class Site:
    def __init__(self, site):
        frames = site.get('frames', [])
        first = next((i for i, f in enumerate(frames) if is_victims(f)), None)
        own = frames[first:] if first is not None else []
        self.names = [plain(f.get('function')) for f in own] or ['?']
        self.line = own[0].get('line') if own else None
        self.bytes, self.blocks = site['bytes'], site['blocks']
        self.kind, self.verdict = site['kind'], site['verdict']

    def is_of(self, function):
        return any(function in (self.names[0], '*') or self.names[0].endswith('::' + function)
                   for function in function.split('|'))

    def __repr__(self):
        return (f'{self.bytes} bytes, {self.blocks} blocks, {self.kind}, {self.verdict}, line '
                f'{self.line}: {" < ".join(self.names[:5])}')


def fits(wanted, number):
    return wanted in ('*', str(number))


def answer(question, arguments, own, children):
    reports = children if question == 'childleak' else own
    sites = [Site(s) for r in reports for s in r['sites'] if s['blocks'] and s['verdict'] != 'runtime']
    of = [s for s in sites if arguments and s.is_of(arguments[-1])]
    if question in ('leak', 'childleak'):
        good = (of and fits(arguments[0], sum(s.bytes for s in of))
                and fits(arguments[1], sum(s.blocks for s in of)))
    elif question == 'clean':
        good = own and not of
    elif question == 'nothing':
        good = own and not sites
    elif question == 'sites':
        good = len(of) == int(arguments[0])
    elif question == 'at':
        good = any(s.line == int(arguments[0]) for s in of)
    elif question == 'deep':
        good = any(s.names[:len(arguments)] == arguments for s in sites)
    elif question == 'kind':
        good = of and all(s.kind == arguments[0] for s in of)
    elif question == 'reports':
        good = len(own) + len(children) == int(arguments[0])
    elif question == 'field':
        value = [r.get(arguments[0], r['summary'].get(arguments[0])) for r in own]
        print(f'{arguments[0]}: {value}')
        good = len(own) == 1 and str(value[0]) == arguments[1]
    elif question == 'verdict':
        good = of and all(s.verdict == arguments[0] for s in of)
    elif question == 'part':
        those = [s for s in of if s.verdict == arguments[0]]
        good = (fits(arguments[1], sum(s.bytes for s in those))
                and fits(arguments[2], sum(s.blocks for s in those)))
    elif question == 'whole':
        good = own and not any(r['summary']['dropped'] for r in own)
    elif question == 'mismatches':
        good = own and sum(len(r['mismatches']) + len(r['errors']) for r in own) == int(arguments[0])
    else:
        sys.exit(f'judge.py: no such question: {question}')
    for report in own + children:
        print(f'report of {report["pid"]}, child of {report["ppid"]}: {report["state"]}')
    for site in sites:
        print(site)
    return good


def main():
    reports = []
    for path in sorted(glob.glob(sys.argv[1] + '/*.json')):
        try:
            with open(path, encoding='utf-8') as file:
                reports.append(json.load(file))
        except ValueError as error:
            sys.exit(f'{path}: {error}')
    pids = {r['pid'] for r in reports}
    own = [r for r in reports if r['ppid'] not in pids]
    children = [r for r in reports if r['ppid'] in pids]
    sys.exit(not answer(sys.argv[2], sys.argv[3:], own, children))


main()
