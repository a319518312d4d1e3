# SPDX-License-Identifier: MIT
# A process that only waits or computes can be asked for lost memory all the same; none of its system calls ends before
# its time for it, in either way of stopping threads, and its registers stay.
# shellcheck shell=bash
. "$LW_SOURCE/test/e2e/lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

start() {
	[ -p in ] || mkfifo in
	: >out
	LD_PRELOAD=$library LEAKWATCH_OPTIONS="log_path=/dev/null:freeze=$1" "$victims/victim-calls" "$2" <in >out 2>err &
	pid=$!
	exec 3>in
	for _ in $(seq 2000); do
		grep -q ready out && return
		sleep 0.01
	done
}

# What came of it stands in json/0.json, its status in $asked.
ask() {
	mkdir -p json
	rm -f json/*
	for _ in $(seq 50); do # on a busy machine not all threads stop in time
		timeout 60 "$snapshot" --leaks --json "$pid" >json/0.json 2>asked
		status=$?
		grep -q '"approximate":true' json/0.json || break
	done
}

stop() {
	echo q >&3
	exec 3>&-
	wait "$pid"
}
all_waited() {
	stop
	prints '0 over too soon, 9 interrupted by a signal'
}

for freeze in ptrace signal; do
	for how in busy idle; do
		start "$freeze" "$how"
		for _ in 1 2; do
			ask
			exits 1
		done
		ok "$how, by $freeze: what is lost is found" judge part lost 333 1 lose
		ok 'and nothing else' judge part lost 0 0 keep
		all_waited
	done
done

start ptrace loop
for _ in 1 2; do
	ask
	exits 1
done
ok 'computing: what is lost is found' judge part lost 333 1 lose
if command -v python3 >/dev/null; then
	python3 - "$pid" >tracer 2>&1 <<'EOF' &
import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)  # PTRACE_SEIZE
time.sleep(60)
EOF
	tracer=$!
	until [ -s tracer ]; do sleep 0.05; done
	ask
	exits 3
	ok 'one that is traced: by whom' grep -q "since it is traced by process $tracer$" asked
	kill "$tracer"
	wait "$tracer"
fi
kill -USR1 "$pid"
wait "$pid"
prints 'computed well'

start ptrace idle
ask
exits 1
kill -STOP "$pid"
ask
exits 3
ok 'one that is stopped is not made to go on, and what was found before is not taken for an answer' \
	grep -q '^State:.T' "/proc/$pid/status"
ok 'and it is said' grep -q 'since it is stopped$' asked
kill -CONT "$pid"
sleep 60 &
for other in $! 4194303; do
	timeout 60 "$snapshot" --leaks "$other" >/dev/null 2>asked
	status=$?
	exits 3
done
kill $!
kill -CONT "$pid"
stop # what SIGCONT itself interrupts is the kernel's affair
done_testing
