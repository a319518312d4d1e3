#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What LeakWatch costs: whole programs, with it, without a tool, and with other tools.

usage: run.py BUILD-FOLDER [--tools NAME;...] [--work NAME;...] [--rounds 5] [--limit 120] [--json FILE] [--add] [--svg FILE]
       run.py BUILD-FOLDER --list
In each round every tool runs every program once, so that a change in the machine's speed meets all alike; tools
that make programs many times slower run in the first round only. Printed are ratios to the run without a tool in the same
round, as median (lowest to highest): CPU time with that of all children, wall time, and peak memory of the biggest
process; where a program counts by itself, nanoseconds more a malloc/free pair. A server's CPU and memory are its own,
its wall time is its client's. Watched: with the helper's CPU time, not the viewer's. What is not installed, crashes or
takes longer than --limit seconds is named. --add goes on from the JSON that is there: what was measured before and is not
now stays in it, so that a long run can be made in parts. A quiet machine, please; below 5 % differences mean little."""
import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import chart
import tools as tools_module
import workloads as workloads_module
from tools import Tool


def children(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def cpu_s(pid):
    try:
        with open(f'/proc/{pid}/schedstat', encoding='ascii') as file:
            return int(file.read().split()[0]) / 1e9
    except OSError:
        return 0


class Watch(threading.Thread):
    """Starts a viewer of the one process that `start` runs, and again if it was too early for it; adds up what the helper uses."""

    def __init__(self, start, viewer):
        super().__init__()
        self.start_process, self.viewer, self.helpers, self.nr_views = start, viewer, {}, 0

    def run(self):
        view = None
        while self.start_process.poll() is None:
            for pid in children(self.start_process.pid):
                if not view or view.poll() is not None:
                    view = subprocess.Popen([*self.viewer, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.nr_views += 1
                for helper in children(pid):
                    self.helpers[helper] = max(self.helpers.get(helper, 0), cpu_s(helper))
            time.sleep(0.03)
        if view:
            view.wait()


def serve(workload, start, limit):
    """Keeps a server busy; seconds of wall time that its client took."""
    end = time.monotonic() + limit
    while not os.path.exists(workload.socket):
        if start.poll() is not None or time.monotonic() > end:
            return 0
        time.sleep(0.01)
    began = time.monotonic()
    subprocess.run(workload.client[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    took = time.monotonic() - began
    for command in workload.client[1:]:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return took


def settings(workload, tool):
    both = {**workload.env, **tool.env}
    if 'LD_PRELOAD' in workload.env and 'LD_PRELOAD' in tool.env:
        both['LD_PRELOAD'] = tool.env['LD_PRELOAD'] + ':' + workload.env['LD_PRELOAD']
    return [f'{name}={value}' for name, value in both.items()]


def run_once(workload, tool, build, folder, limit):
    """CPU s and wall s with all children, peak KiB of the biggest process, status, nanoseconds a pair or None"""
    env = {k: v for k, v in os.environ.items()
           if k not in ('LD_PRELOAD', 'LEAKWATCH_OPTIONS', 'DEBUGINFOD_URLS', 'PYTHONMALLOC', 'MALLOC_CONF')}
    os.makedirs(folder + '/out', exist_ok=True)
    if workload.socket and os.path.exists(workload.socket):
        os.remove(workload.socket)  # of a server that was killed
    with open(folder + '/stdout', 'w+b') as out:
        start = subprocess.Popen([build + '/test/bench/bench-start', folder + '/usage', str(limit), *settings(workload, tool),
                                  '--', *tool.before, *workload.command], env=env, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.DEVNULL)
        watch = tool.viewer and Watch(start, tool.viewer)
        if watch:
            watch.start()
        try:
            served = serve(workload, start, limit) if workload.client else None
            start.wait()
        finally:
            start.terminate()  # nothing runs on if we are ended
            start.wait()
        if watch:
            watch.join()
        with open(folder + '/usage', encoding='ascii') as file:
            cpu, wall, peak, status = file.read().split()
        out.seek(0)
        pair = re.search(rb'ns_per_pair ([0-9.]+)', out.read())
    shutil.rmtree(folder + '/out', ignore_errors=True)
    return {'cpu': float(cpu) + (sum(watch.helpers.values()) if watch else 0), 'wall': served or float(wall),
            'memory': int(peak), 'status': 'limit' if float(wall) >= limit else int(status), 'pair': pair and float(pair[1])}


def spread(values):
    return [round(f(values), 4) for f in (statistics.median, min, max)]


def problem_of(runs, base, limit):
    for run, alone in zip(runs, base):
        if run['status'] == 'limit':
            return f'over {limit} s'
        if run['status'] != alone['status']:
            return 'crash' if run['status'] in (128 + 11, 128 + 6, 128 + 7) else f'status {run["status"]}'
    return None


def compare(runs, base, limit):
    """Ratios to the run alone of the same round, each as [median, lowest, highest]."""
    figures = {what: spread([r[what] / max(b[what], 1e-4) for r, b in zip(runs, base)]) for what in ('cpu', 'wall', 'memory')}
    figures['more_ms'] = spread([(r['wall'] - b['wall']) * 1e3 for r, b in zip(runs, base)])
    pairs = [r['pair'] - b['pair'] for r, b in zip(runs, base) if r['pair'] and b['pair']]
    return {**figures, 'ns_per_pair': spread(pairs) if pairs else None, 'rounds': len(runs),
            'problem': problem_of(runs, base, limit)}


def shown(figures, unit=''):
    median, low, high = figures
    return f'{median:6.2f}{unit}' + (f' ({low:.2f} to {high:.2f})' if high > low else '')


def is_cut(figures):
    return (figures['problem'] or '').startswith('over')


def cell(figures):
    """One figure for a table."""
    median = figures['cpu'][0]
    number = f'{median:.2f}' if median < 10 else f'{median:.0f}'
    return '> ' + number if is_cut(figures) else figures['problem'] or number


def tell(tool, figures):
    if figures['problem']:
        print(f'    {tool:28} {figures["problem"].upper()}' + (f', CPU {cell(figures)} by then' if is_cut(figures) else ''), flush=True)
        return
    print(f'    {tool:28} CPU {shown(figures["cpu"]):25} wall {shown(figures["wall"]):25} memory {shown(figures["memory"]):24}'
          + (f' {shown(figures["ns_per_pair"])} ns a pair' if figures['ns_per_pair'] else '')
          + (f' {figures["more_ms"][0]:+.2f} ms' if abs(figures['more_ms'][0]) < 10 else ''), flush=True)


def measure(name, workload, table, args, folder):
    def once(tool):
        return run_once(workload, tool, args.build, folder, args.limit)

    table = {tool: how for tool, how in table.items() if workload.is_long or not how.viewer}
    base, runs = [], {tool: [] for tool in table}
    once(Tool())
    for number in range(args.rounds):
        base.append(once(Tool()))
        for tool, how in table.items():
            if number == 0 and not how.is_slow:
                once(how)  # warms up
            if number == 0 or not how.is_slow and problem_of(runs[tool], base, args.limit) is None:
                runs[tool].append(once(how))
    alone = {what: spread([b[what] for b in base]) for what in ('cpu', 'wall', 'memory')}
    print(f'{name}: {alone["cpu"][0]:.4f} s CPU, {alone["wall"][0]:.4f} s, {alone["memory"][0] / 1024:.0f} MiB', flush=True)
    row = {'alone': {'cpu_s': alone['cpu'], 'wall_s': alone['wall'], 'peak_kib': alone['memory']},
           'is_long': workload.is_long, 'tools': {}}
    for tool in table:
        row['tools'][tool] = compare(runs[tool], base, args.limit)
        tell(tool, row['tools'][tool])
    return row


def chosen(known, names, what, missing):
    table = {}
    for name in names.split(';') if names else [n for n, how in known.items() if how.is_usual]:
        if name not in known:
            sys.exit(f'run: there is no {what} {name}; --list shows them')
        lacking = missing(name, known[name])
        if lacking:
            print(f'{name} is left out: {lacking}')
        else:
            table[name] = known[name]
    return table


def table_of(result):
    """The medians of CPU time as a Markdown table."""
    rows, names = result['workloads'], result['tools']
    lines = ['| program, s alone | ' + ' | '.join(names) + ' |', '|---' * (len(names) + 1) + '|']
    for name, row in rows.items():
        cells = []
        for tool in names:
            figures = row['tools'].get(tool)
            cells.append(cell(figures) if figures else '')
        lines.append(f'| {name}, {row["alone"]["cpu_s"][0]:.3f} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        model = re.search(r'model name\s*: (.*)', file.read())
    return {'processor': model[1] if model else platform.machine(), 'cores': os.cpu_count(), 'kernel': platform.release(),
            'libc': '-'.join(platform.libc_ver()), 'load_average': os.getloadavg()[0]}


def earlier(args):
    if not args.add or not args.json or not os.path.exists(args.json):
        return None
    with open(args.json, encoding='utf-8') as file:
        return json.load(file)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--tools', help='names with semicolons between')
    parser.add_argument('--work', help='names with semicolons between')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--limit', type=int, default=120)
    parser.add_argument('--json')
    parser.add_argument('--add', action='store_true')
    parser.add_argument('--svg')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    return args


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    args, folder = parse(), tempfile.mkdtemp(prefix='leakwatch-bench.')
    try:
        known_tools, known_work = tools_module.tools(args.build, folder), workloads_module.workloads(args.build, folder)
        if args.list:
            print('tools:', *known_tools, 'programs:', *known_work, sep='\n  ')
            return
        table = chosen(known_tools, args.tools, 'tool', tools_module.missing)
        work = chosen(known_work, args.work, 'program',
                      lambda _, w: workloads_module.missing(w) and workloads_module.missing(w) + ' is not installed')
        workloads_module.make_inputs(folder)
        result = earlier(args) or {'machine': machine(), 'rounds': args.rounds, 'tools': [], 'workloads': {}}
        result['tools'] += [tool for tool in table if tool not in result['tools']]
        for name, workload in work.items():
            row = measure(name, workload, table, args, folder)
            before = result['workloads'].get(name, row)
            result['workloads'][name] = {**before, 'tools': {**before['tools'], **row['tools']}}
            if args.json:
                with open(args.json, 'w', encoding='utf-8') as file:
                    json.dump(result, file, indent=1)
        print('\nCPU time against none, medians:\n' + table_of(result))
        if args.svg:
            with open(args.svg, 'w', encoding='utf-8') as file:
                file.write(chart.draw(result))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
