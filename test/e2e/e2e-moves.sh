#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that change what they are after their start (namespace, user, title, descriptors), and those that
# wait for all children they have: the same results as alone, a report, nothing left.
# usage: e2e-moves.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
chmod 755 "$work" # the folder of the reports is only for who starts the programs

run() { # PROGRAM ARGUMENTS...; its end is waited for at most half a minute
	rm -f json/*
	timeout -k 1 30 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%e.json${OPTIONS:+:$OPTIONS}" \
		"$@" </dev/null >out 2>err
	status=$?
	OPTIONS=
}
loses() { python3 "$LW_SOURCE/test/e2e/judge.py" json leak "$1" "$2" lose; }
is_written() { [ -s json/victim-moves.json ]; }

# what lies under the same numbers in another namespace is not ours
run "$victims/victim-moves" ipc
if [ "$status" -eq 3 ]; then
	skip 'another IPC namespace' 'it is not to be had here'
else
	ok 'another IPC namespace: its status' is_status 4
	ok 'it is reported' within 5 is_written
	ok 'rightly' loses 100 2
	ok 'its own segment is left alone' within 5 has_line out kept
	rm -f json/*
	start "$victims/victim-moves" ipc wait
	kill -KILL "$pid"
	reap
	let_go
	ok 'killed there, it is reported' within 5 is_reported "$pid"
	ok 'rightly' loses 100 2
	nothing_left
fi

# titles and users
run "$victims/victim-moves" title
ok 'a title over arguments and environment: its status' is_status 4
ok 'it is reported' within 5 is_written
ok 'rightly' loses 100 2
ok 'under the command it was started with' grep -qF '"victim-moves"' <(tr -d ' ' <json/victim-moves.json | grep -o '"exe":"[^"]*"' | sed 's,"[^"]*/,",')
if [ "$(id -u)" -eq 0 ]; then
	for what in user server; do
		run "$victims/victim-moves" $what
		ok "$what: its status" is_status 4
		ok "$what: it is reported" within 5 is_written
		ok "$what: rightly" loses 100 2
		rm -f json/*
		start "$victims/victim-moves" $what wait
		kill -KILL "$pid"
		reap
		let_go
		ok "$what: killed, it is reported" within 5 is_reported "$pid"
		ok "$what: rightly" loses 100 2
	done
	# exec by root into another user's process: that cannot remove the region of the image before it
	rm -f json/*
	chmod 777 json
	if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$victims/victim-killed" 2>/dev/null; then
		start setpriv --reuid=65534 --regid=65534 --clear-groups "$victims/victim-killed" pause
		sees_exec() { [ -n "$(objects | comm -13 objects.before - | grep shm)" ] && has_cleaners 2; }
		within 5 sees_exec
		sleep 0.5 # until root's cleaner has looked
		kill -KILL "$pid"
		reap
		let_go
		ok 'another user by exec: killed, it is reported' within 5 is_reported "$pid"
		nothing_left
		ok 'rightly, not as the program before it' has_losses
		rm -f json/*
	else
		skip 'another user by exec' 'the build is hidden from others'
	fi
else
	skip 'another user' 'not root'
fi
run "$victims/victim-moves" files
ok 'no descriptor left: its status' is_status 4
ok 'it is reported' within 5 is_written
ok 'rightly' loses 100 2
nothing_left

# those who wait for everybody are given nobody, also when it is their children who want a cleaner
run "$victims/victim-waits-for-all"
ok 'no child but its own' is_status 6
ok 'and those two' has_line out 'reaped 2, odd 0'
run "$victims/victim-waits-for-all" subreaper
ok 'nor one that takes in orphans' is_status 6
ok 'and those two' has_line out 'reaped 2, odd 0'
start "$victims/victim-waits-for-all" slow
within 2 has_cleaners 1
cleaners | xargs -r kill -KILL
within 2 has_cleaners 0
let_go
reap
ok 'nor when the cleaner it started is gone' is_status 6
ok 'and those two' has_line out 'reaped 2, odd 0'
env LD_PRELOAD="$library" /bin/true # brings a cleaner, which puts away what the one that was killed has left
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	for how in '' subreaper; do
		# shellcheck disable=SC2086 # none or one
		OPTIONS=report=never run unshare --pid --fork --mount-proc "$victims/victim-waits-for-all" $how
		ok "process 1${how:+, a $how}" is_status 6
		ok 'and those two' has_line out 'reaped 2, odd 0'
	done
else
	skip 'process 1' 'another pid namespace is not to be had here'
fi
nothing_left
done_testing
