#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Few descriptors, terminals, namespaces: who is watched how, and where a killed process's report goes.
. "$(dirname "$0")/cleaner-lib.sh"

# more targets than descriptors: those without a pidfd are held by number and start time
pids=()
mkfifo gate
for ((i = 0; i < 12; i++)); do
	(
		ulimit -n 20
		exec env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" \
			"$victims/victim-killed" pause
	) <gate >>out 3>&- &
	pids+=($!)
done
exec 8>gate
are_ready() { [ "$(grep -c ready out)" -eq 12 ]; }
within 10 are_ready
ok 'one cleaner of few descriptors' within 2 has_cleaners 1
nr_pidfds() { find "/proc/$(cleaners)/fd" -type l -lname '*pidfd*' | wc -l; }
some_have_none() { echo "$(nr_pidfds) pidfds"; [ "$(nr_pidfds)" -lt 12 ]; }
ok 'has not one for every target' some_have_none
sleep 1 # it must not take them for dead
ok 'and keeps all of them' test "$(find json -name '*.json' | wc -l)" -eq 0
exec 2>/dev/null
kill -KILL "${pids[@]}"
wait "${pids[@]}"
exec 2>&3 8>&-
nr_reports_is() { find json -name '*.json' | wc -l; [ "$(find json -name '*.json' | wc -l)" -eq "$1" ]; }
ok 'all are reported' within 10 nr_reports_is 12
nothing_left

# a terminal: the report of a killed process goes to the one it had
in_a_terminal() { # OPTIONS COMMAND
	python3 - "$library" "$1" "${@:2}" <<-'PYTHON'
		import glob
		import os, pty, select, signal, sys, time
		pid, terminal = pty.fork()
		if pid == 0:
		    os.environ['LD_PRELOAD'], os.environ['LEAKWATCH_OPTIONS'] = sys.argv[1:3]
		    os.execv(sys.argv[3], sys.argv[3:])
		seen = b''
		def read(seconds, word):
		    global seen
		    end = time.time() + seconds
		    while word not in seen and time.time() < end:
		        if select.select([terminal], [], [], 0.1)[0]:
		            try:
		                seen += os.read(terminal, 65536)
		            except OSError:  # nobody has it open now: the report is still to come
		                time.sleep(0.02)
		def is_held():  # its cleaner has found it, and the terminal it has
		    for info in glob.glob('/proc/[0-9]*/fdinfo/*'):
		        try:
		            if f'Pid:\t{pid}\n' in open(info).read():
		                return True
		        except OSError:
		            pass
		    return False
		read(30, b'ready')
		end = time.time() + 30
		while not is_held() and time.time() < end:
		    time.sleep(0.02)
		os.kill(pid, signal.SIGKILL)
		os.waitpid(pid, 0)
		read(2 if 'never' in sys.argv[2] else 30, b'SUMMARY')
		sys.stdout.write(seen.decode())
	PYTHON
}
in_a_terminal report=auto "$victims/victim-killed" pause >out
ok 'the terminal of a killed process has its report' matches out 'SUMMARY: LeakWatch: 192 byte.* 3 allocation'
ok 'and why it ended' matches out 'SIGKILL|signal 9|killed'
in_a_terminal report=never "$victims/victim-killed" pause >out
ok 'nothing if it is not wanted' has_no_match out LeakWatch
nothing_left

# namespaces that share our segments: each place has a cleaner of its own
if ! unshare --pid --fork --mount-proc true 2>/dev/null; then
	skip 'another pid namespace' 'unshare is not allowed here'
	done_testing
fi
rm -f json/*
start "$victims/victim-killed" pause
outer=$pid
ok 'a cleaner here' within 2 has_cleaners 1
mkfifo fifo.inner
env LEAKWATCH_OPTIONS="json=$work/json/inner-%p.json" unshare --pid --fork --mount-proc bash -c \
	"LD_PRELOAD=$library $victims/victim-killed pause & echo \$!; wait \$!; echo dead; read -r _ <fifo.inner" \
	>out.inner </dev/null 2>/dev/null &
unshared=$!
within 5 grep -q ready out.inner
ok 'one more in there' within 2 has_cleaners 2
inner=$(grep -x '[0-9]*' out.inner)
sleep 0.6
ok 'nobody is taken for dead' nr_reports_is 0
shell=$(pgrep -P "$unshared")
kill -KILL "$(pgrep -P "$shell" -x victim-killed)" # its cleaner is there, too
ok 'a kill in there is reported' within 2 is_reported "inner-$inner"
kill -KILL "$shell"
exec 2>/dev/null
wait "$unshared"
exec 2>&3

# process 1 would be given its cleaner as a child, and may wait for all it has: it gets none, and leaves nothing
rm -f json/*
env LEAKWATCH_OPTIONS="json=$work/json/inner.json" unshare --pid --fork --mount-proc \
	env LD_PRELOAD="$library" "$victims/victim-killed" pause >out.inner </dev/null 2>/dev/null &
unshared=$!
within 5 grep -q ready out.inner
ok 'process 1 starts no cleaner' has_cleaners 1
kill -KILL "$(pgrep -P "$unshared")"
exec 2>/dev/null
wait "$unshared"
exec 2>&3
kill -KILL "$outer"
reap
let_go
ok 'as is the one outside' within 1 is_reported "$outer"
nothing_left
done_testing
