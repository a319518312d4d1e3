#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same programs under LeakWatch, LeakSanitizer and valgrind memcheck, side by side, site by site.

usage: compare.py BUILD-FOLDER [--real [NAME,...]] [--run 'COMMAND'] [FILE.c|FILE.cc ...]
A source is built twice, plain and with -fsanitize=leak, by its `// BUILD:` line if it has one. A real program (--real: those
of programs.py, or some of them; --run: one more) is not built: LeakSanitizer's library is preloaded into it, with a
constructor that starts it, as the compiler's start file does in a program that is built with it.
A site is the first function of the program itself in the stack; of each the bytes that are lost, or lost indirectly (not
memcheck's `possibly`: interior pointers count as pointers here), in all processes that run this program. What is started by
the program and is another is left out. A line that differs is marked with !, and the totals say how many agree. A tool that
did not search has no column (-), and it is said why. All is read against verdicts.txt beside this script, which says who
is right about each line that differs, and why: a difference that is not explained there, or no longer stands as it is
explained, is a failure (exit status 1)."""
import collections
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True  # no folder is left beside the scripts
from programs import PROGRAMS  # pylint: disable=wrong-import-position

LOST = ('lost', 'indirect', 'unfreed')  # the last: of a killed process, which is not searched
EARLY = 'void __lsan_init(void); __attribute__((constructor)) static void up(void) { __lsan_init(); }'


def plain(name):
    name = re.sub(r'\(.*', '', name or '?')
    while re.search(r'<[^<>]*>', name):
        name = re.sub(r'<[^<>]*>', '', name)
    return re.sub(r'\.(part|isra|constprop|cold).*', '', name).split(' ')[-1]


def own(frames, program):
    """frames: (function, module or file); the first that is the program's"""
    bases = {os.path.basename(program), os.path.basename(os.path.realpath(program))}
    frames = [f for f in frames if not (f[0] or '').startswith('__interceptor_') and 'liblsan' not in str(f[-1])]
    for function, *places in frames:
        if any(re.search(r'\.(h|hh|hpp|tcc)$', p or '') for p in places):
            continue  # inlined out of a header
        if any(bases & {os.path.basename(p or ''), os.path.splitext(os.path.basename(p or ''))[0]} for p in places):
            return plain(function) if function else os.path.basename(str(places[-1]))
    # no name in a stripped program: the file is what is left
    return next((plain(f[0]) for f in frames if f[0]), os.path.basename(str(frames[0][-1]))) if frames else 'no-stack'


def run(command, folder, env=None):
    """in the folder; None if it does not end"""
    with subprocess.Popen(['sh', '-c', command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})), cwd=folder, start_new_session=True) as child:
        try:
            child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return None
    return child.returncode


def ended(status):
    if status is None:
        return 'does not end'
    status = 128 - status if status < 0 else status
    return f'killed by {signal.Signals(status - 128).name}' if 128 < status < 160 else f'exit status {status}'


def is_program(path, program):
    return bool(path) and os.path.basename(os.path.realpath(path)) == os.path.basename(os.path.realpath(program))


def leakwatch(build, command, program, folder):
    options = shlex.quote(f'json={folder}/lw.%p.json:log_path=/dev/null')
    status = run(command(f'env LD_PRELOAD={build}/preload/libleakwatch.so LEAKWATCH_OPTIONS={options}'), folder)
    for _ in range(100):  # of one that was killed it is written by another process
        paths = glob.glob(folder + '/lw.*.json')
        if paths:
            break
        time.sleep(0.1)
    found = None
    for path in paths:
        with open(path, encoding='utf-8') as file:
            report = json.load(file)
        if not is_program(report['exe'], program):
            continue
        if report['state'] != 'killed' and report['sites'] and report['scan']['state'] != 'done':
            return None, f'no search: {report["scan"]}'
        found = found or collections.Counter()
        for site in report['sites']:
            lost = site['bytes'] if site['verdict'] in LOST else site.get('lost_bytes', 0) + site.get('indirect_bytes', 0)
            if lost:
                found[own([(f.get('function'), f.get('file'), f.get('module')) for f in site['frames']], program)] += lost
    return found, f'no report: {ended(status)}'


def lsan(early, command, program, folder):
    # by its own unwinder it has no callers of what libc allocates
    options = (f'fast_unwind_on_malloc=0:malloc_context_size=60:allocator_may_return_null=1:exitcode=0:log_threads=1'
               f':log_exe_name=1:log_path={folder}/ls')
    status = run(command(f'env {f"LD_PRELOAD={early}" if early else ""} LSAN_OPTIONS={options}'), folder)
    found, why = None, f'no search: {ended(status)}'
    for path in glob.glob(folder + '/ls.*'):
        if not is_program(os.path.basename(path)[3:].rsplit('.', 1)[0], os.path.basename(program)):
            continue
        with open(path, encoding='utf-8', errors='replace') as file:
            text = file.read()
        fatal = re.search(r'Tracer caught signal \d+|(?<=ERROR: LeakSanitizer: )(?!detected).*?(?= trying|:|\n)', text)
        if fatal:
            why = f'no search: {fatal[0]}'
        elif 'Processing thread' in text:
            found = found or collections.Counter()
        for leak in re.split(r'\n(?=(?:Direct|Indirect) leak of )', text)[1:]:
            size = int(re.match(r'\w+ leak of (\d+) byte', leak)[1])
            frames = [(m[1], m[2]) for m in re.finditer(r'#\d+ 0x[0-9a-f]+ (?:in (.+?))? (\S+)', leak.split('\n\n')[0])]
            found = collections.Counter() if found is None else found
            found[own([(f, re.sub(r':\d+.*', '', p).strip('()').split('+')[0]) for f, p in frames], program)] += size
    return None if status is None else found, why


def memcheck(command, program, folder):
    status = run(command(f'valgrind -q --trace-children=yes --num-callers=60 --leak-check=full --show-leak-kinds=definite,indirect'
                         f' --xml=yes --xml-file={folder}/vg.%p.xml'), folder)
    found = None
    for path in glob.glob(folder + '/vg.*.xml'):
        try:
            tree = ElementTree.parse(path)
        except (ElementTree.ParseError, OSError):
            continue
        if not is_program(shutil.which(tree.findtext('args/argv/exe')), program):
            continue
        found = found or collections.Counter()
        for error in tree.iter('error'):
            if not (error.findtext('kind') or '').startswith(('Leak_Definitely', 'Leak_Indirectly')):
                continue
            frames = [(f.findtext('fn'), f.findtext('file'), f.findtext('obj')) for f in error.find('stack').iter('frame')]
            direct = re.search(r'([\d,]+) direct', error.findtext('xwhat/text') or '')  # the rest stands in records of its own
            found[own(frames, program)] += int(direct[1].replace(',', '') if direct else error.findtext('xwhat/leakedbytes'))
    return found, f'no report: {ended(status)}'


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
    if right <= {'none', 'each'}:  # each of its own run, which is not the same twice
        return why and f'{"".join(right)} right: {why}'
    told = {found[site] for tool, (found, _) in columns if found is not None and tool in right}
    return f'{",".join(sorted(right))} right: {why}' if len(told) == 1 else None


def show(name, columns, known):
    tools = [t for t, (found, _) in columns if found is not None]
    sites = sorted({s for _, (found, _) in columns for s in found or ()})
    agree = unexplained = 0
    print(f'\n{name}: {", ".join(tools)}' + ('' if sites else ': nothing is lost'))
    for tool, (found, note) in columns:
        if found is None:
            _, why = known.get((name, tool), (None, None))
            unexplained += not why
            print(f'  {tool}: {note}\n    {why or "NOT EXPLAINED"}')
    for site in sites:
        numbers = [found[site] for _, (found, _) in columns if found is not None]
        same = len(set(numbers)) == 1
        agree += same
        cells = '  '.join(f'{found[site]:>12}' if found is not None else f'{"-":>12}' for _, (found, _) in columns)
        print(f'{" " if same else "!"} {site[:44]:44} {cells}')
        if not same:
            why = explain(known, name, site, columns)
            unexplained += not why
            print(f'    {why or "NOT EXPLAINED"}')
    sys.stdout.flush()
    return len(sites), agree, unexplained


def build_source(source, folder):
    """(the command, with a place for how it is run, of the plain and of the sanitized program; the program)"""
    program = folder + '/' + os.path.splitext(os.path.basename(source))[0]
    compiler = 'gcc' if source.endswith('.c') else 'g++ -std=c++17'
    with open(source, encoding='utf-8', errors='replace') as file:
        text = file.read()
    build = re.search(r'//\s*BUILD:?\s+(.*\S)', text)
    build = build[1] if build else f'{compiler} -g -O1 $F -o $X -lpthread -ldl'
    start = re.search(r'//\s*RUN:?\s+(.*\S)', text)
    commands = []
    for place, flags in ((folder, ''), (folder + '/sanitized', '-fsanitize=leak')):
        out = place + '/' + os.path.basename(program)
        os.makedirs(place, exist_ok=True)
        if run(re.sub(r'\b(gcc|g\+\+)(?=\s)', r'\1 ' + flags, build), folder, {'F': source, 'X': out}) != 0:
            sys.exit(f'compare.py: {source} cannot be built')
        commands.append(lambda how, out=out: (start[1] if start else '$X').replace('$X', f'{how} {out}', 1).replace('$X', out))
    return commands[0], commands[1], program


def build_early(folder):
    """what is preloaded into a program that is not built with LeakSanitizer"""
    library = subprocess.run(['gcc', '-print-file-name=liblsan.so'], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(['gcc', '-shared', '-fPIC', '-fsanitize=leak', '-x', 'c', '-', '-o', folder + '/early.so'], input=EARLY, text=True,
                   check=True)
    return f'{library}:{folder}/early.so'


def one(build, early, what, known):
    with tempfile.TemporaryDirectory(prefix='leakwatch-test.') as folder:
        if isinstance(what, str):
            plain_run, sanitized_run, program = build_source(os.path.abspath(what), folder)
            name, early = os.path.basename(program), None
        else:
            name, program, prepare, command = what
            if not shutil.which(program):
                print(f'\n{name}: is not installed here')
                return 0, 0, 0
            if run(prepare or ':', folder) != 0:
                sys.exit(f'compare.py: {name} cannot be prepared')
            program = shutil.which(program)
            plain_run = sanitized_run = lambda how: command.replace('%', f'{how} {program}', 1)
            if run(plain_run('env'), folder) != 0 or run(f'rm -rf * && {prepare or ":"}', folder) != 0:
                sys.exit(f'compare.py: {name} does not run')
        return show(name, [('leakwatch', leakwatch(build, plain_run, program, folder)),
                           ('lsan', lsan(early, sanitized_run, program, folder)),
                           ('memcheck', memcheck(plain_run, program, folder))], known)


def main():
    build, rest = os.path.abspath(sys.argv[1]), sys.argv[2:]
    sources, programs = [], []
    while rest:
        if rest[0] == '--run':
            program, _, arguments = rest[1].partition(' ')
            programs.append((program, program, '', f'% {arguments}'))
            rest = rest[2:]
        elif rest.pop(0) == '--real':
            names = rest.pop(0).split(',') if rest and '.' not in rest[0] and rest[0][:2] != '--' else None
            programs += [p for p in PROGRAMS if names is None or p[0] in names]
        else:
            sources.append(sys.argv[len(sys.argv) - len(rest) - 1])
    known = verdicts()
    totals = [0, 0, 0]
    print(f'  {"bytes lost, by site":44} ' + '  '.join(f'{t:>12}' for t in ('leakwatch', 'lsan', 'memcheck')))
    with tempfile.TemporaryDirectory(prefix='leakwatch-test.') as folder:
        early = build_early(folder) if programs else None
        for what in sorted(sources, key=os.path.basename) + programs:
            totals = [a + b for a, b in zip(totals, one(build, early, what, known))]
    print(f'\n{len(sources)} sources and {len(programs)} real programs; {totals[1]} of {totals[0]} sites agree; '
          f'{totals[2]} differences are not explained')
    sys.exit(totals[2] > 0)


main()
