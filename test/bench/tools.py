# SPDX-License-Identifier: MIT
"""The tools that run.py compares: how each is put before a program, and what must be there for it.

LeakWatch writes its report into a file, as all others write theirs."""
import dataclasses
import os
import shutil
import subprocess

LIBRARIES = '/usr/lib/x86_64-linux-gnu'
LSAN = LIBRARIES + '/liblsan.so.0'
TCMALLOC = LIBRARIES + '/libtcmalloc.so.4'
JEMALLOC = LIBRARIES + '/libjemalloc.so.2'
HEAPTRACK = '/usr/lib/heaptrack/libheaptrack_preload.so'


@dataclasses.dataclass
class Tool:
    env: dict = dataclasses.field(default_factory=dict)
    before: list = dataclasses.field(default_factory=list)   # words before the command
    needs: str = None          # a file or a program
    viewer: list = None        # a command that watches the process whose number is added
    is_slow: bool = False      # many times slower: once is enough
    is_usual: bool = True


def leakwatch(build, folder, options='', **more):
    library = build + '/preload/libleakwatch.so'
    return Tool({'LD_PRELOAD': library, 'LEAKWATCH_OPTIONS': f'log_path={folder}/out/lw.%p{options}'}, needs=library, **more)


def preload(library, **env):
    return {'LD_PRELOAD': library, **env}


def tools(build, folder):
    """name -> Tool; what they write goes to FOLDER/out"""
    out = folder + '/out'
    lsan = f'exitcode=0:log_path={out}/lsan'
    je = f'prof:true,prof_final:true,prof_prefix:{out}/je'
    view = [build + '/snapshot/leakwatch-snapshot', '--interval=1']
    return {
        'leakwatch': leakwatch(build, folder),
        'leakwatch, caller only': leakwatch(build, folder, ':depth=1'),
        'leakwatch, sampled': leakwatch(build, folder, ':sample=512k'),
        'leakwatch, watched': leakwatch(build, folder, viewer=view),
        'leakwatch, 128 frames': leakwatch(build, folder, ':depth=128', is_usual=False),
        'heaptrack': Tool(before=['heaptrack', '-o', out + '/ht'], needs='heaptrack'),
        'heaptrack, in-process part': Tool(preload(HEAPTRACK, DUMP_HEAPTRACK_OUTPUT=out + '/ht'), needs=HEAPTRACK),
        'lsan': Tool(preload(LSAN, LSAN_OPTIONS=lsan), needs=LSAN),
        'lsan, full stacks': Tool(preload(LSAN, LSAN_OPTIONS=lsan + ':fast_unwind_on_malloc=0'), needs=LSAN,
                                  is_slow=True),
        'jemalloc profiling, sampled': Tool(preload(JEMALLOC, MALLOC_CONF=je + ',lg_prof_sample:19'), needs=JEMALLOC),
        'jemalloc profiling': Tool(preload(JEMALLOC, MALLOC_CONF=je + ',lg_prof_sample:0'), needs=JEMALLOC, is_slow=True),
        'gperftools': Tool(preload(TCMALLOC, HEAPPROFILE=out + '/hp'), needs=TCMALLOC, is_slow=True),
        'memcheck': Tool(before=['valgrind', '-q', '--leak-check=full', f'--log-file={out}/vg.%p'], needs='valgrind',
                         is_slow=True),
    }


def can_profile():
    """Is this jemalloc built with its profiler? Without, it says so of its options."""
    ran = subprocess.run(['sh', '-c', 'exec "$0" -c :', shutil.which('bash') or 'sh'], capture_output=True, text=True, check=False,
                         env=dict(os.environ, LD_PRELOAD=JEMALLOC, MALLOC_CONF='stats_print:true'))
    return 'config.prof: true' in ran.stderr + ran.stdout


def missing(name, tool):
    """Why it cannot be used here, or None."""
    if tool.needs and not os.path.exists(tool.needs) and not shutil.which(tool.needs):
        return f'{tool.needs} is not there'
    if name.startswith('jemalloc') and not can_profile():
        return 'this jemalloc is built without its profiler'
    return None
