#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same programs under LeakWatch, LeakSanitizer and valgrind memcheck, side by side, site by site.

usage: compare.py BUILD-FOLDER FILE.c|FILE.cc|--run 'COMMAND' ...
A source is built twice, plain and with -fsanitize=leak; a COMMAND (a real program) is not built, so LeakSanitizer
cannot see it and is left out. A site is the first function of the program itself in the stack; of each the bytes that are
lost, or lost indirectly (not memcheck's `possibly`: interior pointers count as pointers here). A line that differs is marked with !, and the totals say how many agree. What is shown is
read against verdicts.txt beside this script, which says who is right about each line that differs, and why: a difference
that is not explained there, or no longer stands as it is explained, is a failure (exit status 1)."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

LOST = ('lost', 'indirect')


def plain(name):
    name = re.sub(r'\(.*', '', name or '?')
    while re.search(r'<[^<>]*>', name):
        name = re.sub(r'<[^<>]*>', '', name)
    return re.sub(r'\.(part|isra|constprop|cold).*', '', name).split(' ')[-1]


def own(frames, program):
    """frames: (function, module or file); the first that is the program's"""
    base = os.path.basename(program)
    frames = [f for f in frames if not (f[0] or '').startswith('__interceptor_')]
    for function, *places in frames:
        if any(re.search(r'\.(h|hh|hpp|tcc)$', p or '') for p in places):
            continue  # inlined out of a header
        if any(base in (os.path.basename(p or ''), os.path.splitext(os.path.basename(p or ''))[0]) for p in places):
            return plain(function) if function else os.path.basename(str(places[-1]))
    # no name in a stripped program: the file is what is left
    return next((plain(f[0]) for f in frames if f[0]), os.path.basename(str(frames[0][-1]))) if frames else 'no-stack'


def run(command, env=None):
    try:
        return subprocess.run(['sh', '-c', command], capture_output=True, text=True, errors='replace', timeout=300,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})), check=False)
    except subprocess.TimeoutExpired:
        return None


def leakwatch(build, command, program, folder):
    if not run(f'exec {command}', {'LD_PRELOAD': build + '/preload/libleakwatch.so',
                                   'LEAKWATCH_OPTIONS': f'json={folder}/lw.%p.json:log_path=/dev/null'}):
        return None
    for _ in range(100):  # of one that was killed it is written by another process
        paths = glob.glob(folder + '/lw.*.json')
        if paths:
            break
        time.sleep(0.1)
    found = collections.Counter() if paths else None
    for path in paths:
        with open(path, encoding='utf-8') as file:
            report = json.load(file)
        for site in report['sites']:
            lost = site['bytes'] if site['verdict'] in LOST else site.get('lost_bytes', 0) + site.get('indirect_bytes', 0)
            if lost:
                found[own([(f.get('function'), f.get('file'), f.get('module')) for f in site['frames']], program)] += lost
    return found


def lsan(command, program):
    # by its own unwinder it has no callers of what libc allocates
    out = run(command, {'LSAN_OPTIONS': 'fast_unwind_on_malloc=0:malloc_context_size=60:allocator_may_return_null=1'})
    if not out:
        return None
    found = collections.Counter()
    for text in re.split(r'\n(?=(?:Direct|Indirect) leak of )', out.stderr)[1:]:
        size = int(re.match(r'\w+ leak of (\d+) byte', text)[1])
        frames = [(m[1], m[2]) for m in re.finditer(r'#\d+ 0x[0-9a-f]+ in (.+?) (\S+)', text.split('\n\n')[0])]
        found[own([(f, re.sub(r':\d+.*', '', p).strip('()').split('+')[0]) for f, p in frames], program)] += size
    return found


def memcheck(command, program, folder):
    if not run(f'valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --xml=yes --xml-file={folder}/vg.%p.xml'
               f' {command}'):
        return None
    found = None
    for path in glob.glob(folder + '/vg.*.xml'):
        try:
            tree = ElementTree.parse(path)
        except (ElementTree.ParseError, OSError):
            continue
        found = found or collections.Counter()
        for error in tree.iter('error'):
            if not (error.findtext('kind') or '').startswith(('Leak_Definitely', 'Leak_Indirectly')):
                continue
            frames = [(f.findtext('fn'), f.findtext('file'), f.findtext('obj')) for f in error.find('stack').iter('frame')]
            direct = re.search(r'([\d,]+) direct', error.findtext('xwhat/text') or '')  # the rest stands in records of its own
            found[own(frames, program)] += int(direct[1].replace(',', '') if direct else error.findtext('xwhat/leakedbytes'))
    return found


def verdicts():
    """(program, site) -> (tools that are right, why)"""
    known = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'verdicts.txt'), encoding='utf-8') as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                program, site, right, why = line.split(None, 3)
                known[program, site] = (set(right.split(',')), why.strip())
    return known


def explain(known, name, site, columns):
    """why the tools differ; None: nobody has said, or those said to be right do not agree among each other"""
    right, why = known.get((name, site), (set(), None))
    told = {found[site] for tool, found in columns if found is not None and tool in right}
    return f'{",".join(sorted(right))} right: {why}' if len(told) == 1 else None


def show(name, columns, known):
    tools = [t for t, found in columns if found is not None]
    sites = sorted({s for _, found in columns if found for s in found})
    agree = unexplained = 0
    print(f'\n{name}: {", ".join(tools)}' + ('' if sites else ': nothing is lost'))
    for site in sites:
        numbers = [found[site] for _, found in columns if found is not None]
        same = len(set(numbers)) == 1
        agree += same
        cells = '  '.join(f'{found[site]:>12}' if found is not None else f'{"-":>12}' for _, found in columns)
        print(f'{" " if same else "!"} {site[:44]:44} {cells}')
        if not same:
            why = explain(known, name, site, columns)
            unexplained += not why
            print(f'    {why or "NOT EXPLAINED"}')
    return len(sites), agree, unexplained


def main():
    build, rest = os.path.abspath(sys.argv[1]), sys.argv[2:]
    sites = agree = unexplained = 0
    known = verdicts()
    print(f'  {"bytes lost, by site":44} ' + '  '.join(f'{t:>12}' for t in ('leakwatch', 'lsan', 'memcheck')))
    while rest:
        with tempfile.TemporaryDirectory(prefix='leakwatch-test.') as folder:
            if rest[0] == '--run':
                command, sanitized = rest[1], None
                program, rest = command.split()[0], rest[2:]
            else:
                source = os.path.abspath(rest.pop(0))
                program = folder + '/' + os.path.splitext(os.path.basename(source))[0]
                compiler = 'g++ -std=c++17' if source.endswith('.cc') else 'gcc'
                for flags, out in (('', program), ('-fsanitize=leak', program + '.lsan')):
                    with open(source, encoding='utf-8', errors='replace') as file:
                        line = re.search(r'//\s*BUILD:?\s+(.*\S)', file.read())
                    line = line[1] if line else f'{compiler} -g -O1 $F -o $X -lpthread -ldl'
                    line = re.sub(r'\b(gcc|g\+\+)(?=\s)', r'\1 ' + flags, line)
                    run(line, {'F': source, 'X': out})
                command, sanitized = program, program + '.lsan'
            columns = [('leakwatch', leakwatch(build, command, program, folder)),
                       ('lsan', lsan(sanitized, program) if sanitized and os.path.exists(sanitized) else None),
                       ('memcheck', memcheck(command, program, folder))]
            one = show(os.path.basename(program), columns, known)
            sites, agree, unexplained = sites + one[0], agree + one[1], unexplained + one[2]
    print(f'\n{agree} of {sites} sites agree; {unexplained} differences are not explained')
    sys.exit(unexplained > 0)


main()
