# SPDX-License-Identifier: MIT
# What a program can see of itself: descriptors, signals, threads, folder, environment; then real work.
import json
import os
import signal
import subprocess
import sys
import threading

for line in open('/proc/self/status'):
    if line.startswith(('SigPnd', 'SigBlk', 'SigIgn', 'SigCgt', 'Shd', 'Umask', 'Threads', 'Groups', 'NoNewPrivs')):
        print(line.split())
print(sorted(os.listdir('/proc/self/fd'), key=int), os.getcwd())
print(sorted(k for k in os.environ if k not in ('LD_PRELOAD', 'LEAKWATCH_OPTIONS')))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
try:
    print(os.wait())
except ChildProcessError as error:
    print(error)

data = [{'id': i, 'tags': [str(i * k % 97) for k in range(5)], 'text': 'x' * (i % 50)} for i in range(3000)]
text = json.dumps(data)
back = json.loads(text)
print(len(text), sum(len(d['text']) for d in back), sorted(back[77]['tags']))
sums = [0] * 4


def work(n):
    sums[n] = sum(len(str(i) * n) for i in range(20000))


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sums)
child = subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 3'], capture_output=True, text=True)
print(child.returncode, repr(child.stdout), repr(child.stderr))
pid = os.fork()
if not pid:
    garbage = [str(i) for i in range(1000)]
    os._exit(len(garbage) % 256)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.exit(5)
