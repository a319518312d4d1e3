#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up what tests said in TAP: one line a failure, one a reason for skipping, then the sum.

usage: summary.py LOG... ; LOG is meson's testlog.json, or fail:TEXT, or skip:TEXT for what was
never started. Every `ok` and `not ok` counts; a test that ends badly without having said `not ok`
(a crash, a timeout, a plan not kept) counts as one failure; a test skipped as a whole as one skip.
The status is 1 if anything failed or nothing passed."""
import collections
import json
import os
import re
import sys

LINE = re.compile(r'(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*(SKIP)\b\s*(.*))?$', re.I)
GOOD = {'OK', 'SKIP', 'EXPECTEDFAIL'}


def judge(test, where, total, failures, skips):
    """Counts one entry of a log."""
    name = f'{where} {test["name"].split(" / ")[-1].split(":")[-1]}'
    nr_failed = nr_lines = 0
    for line in (test.get('stdout') or '').splitlines():
        whole = re.match(r'1\.\.0\s*#\s*SKIP\S*\s*(.*)', line, re.I)
        if whole:
            total['skipped'] += 1
            skips[whole[1].strip() or 'no reason given'].append(name)
            nr_lines += 1
            continue
        found = LINE.match(line)
        if not found:
            continue
        nr_lines += 1
        if (found[3] or '').upper() == 'SKIP':
            total['skipped'] += 1
            skips[found[4].strip() or found[2].strip()].append(name)
        elif found[1]:
            nr_failed += 1
            total['failed'] += 1
            failures.append(f'{name}: {found[2]}')
        else:
            total['passed'] += 1
    if test['result'] not in GOOD and not nr_failed:
        total['failed'] += 1
        failures.append(f'{name}: {test["result"].lower()}')
    elif not nr_lines and test['result'] == 'OK':
        total['passed'] += 1
    elif not nr_lines and test['result'] == 'SKIP':
        total['skipped'] += 1
        skips['the test says no more'].append(name)


def main():
    total = collections.Counter()
    failures, skips = [], collections.defaultdict(list)
    for log in sys.argv[1:]:
        if log.startswith('fail:'):
            if log[5:]:
                total['failed'] += 1
                failures.append(log[5:])
        elif log.startswith('skip:'):
            total['skipped'] += 1
            skips[log[5:]].append('all.sh')
        else:
            where = os.path.basename(os.path.dirname(os.path.dirname(log)))
            with open(log, encoding='utf-8', errors='replace') as lines:
                for line in lines:
                    judge(json.loads(line), where, total, failures, skips)
    for reason, names in sorted(skips.items()):
        print(f'skipped: {reason} ({", ".join(sorted(set(names)))})')
    for failure in failures:
        print(f'failed: {failure}')
    print(f'{total["passed"]} passed, {total["failed"]} failed, {total["skipped"]} skipped')
    sys.exit(bool(total['failed']) or not total['passed'])


main()
