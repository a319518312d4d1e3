#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that the OOM killer of its memory cgroup ends is reported: by the cleaner, by a launcher that
# stays, from a black box that outlived its container.
. "$(dirname "$0")/cleaner-lib.sh"

limit_bytes=$((48 << 20))
group=

# A cgroup of our own below the one we are in, with the limit; its path in $group.
make_group() {
	local own
	own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	if [ -n "$own" ]; then
		[ -d "/sys/fs/cgroup/memory$own" ] || own=
		group=/sys/fs/cgroup/memory$own/leakwatch-test.$$
		mkdir "$group" && echo "$limit_bytes" >"$group/memory.limit_in_bytes"
	else
		own=$(sed -n 's/^0:://p' /proc/self/cgroup)
		group=/sys/fs/cgroup$own/leakwatch-test.$$
		mkdir "$group" && echo "$limit_bytes" >"$group/memory.max" && echo 0 >"$group/memory.swap.max"
	fi
}
drop_group() { [ ! -d "$group" ] || within 5 rmdir "$group"; }
trap 'cd /; drop_group; rm -rf "$work"' EXIT
if ! make_group 2>why; then
	skip 'the OOM killer' "no memory cgroup can be made here: $(tail -n 1 why)"
	done_testing
fi

# inside COMMAND...: in the cgroup; $status, $pid
inside() {
	# shellcheck disable=SC2016 # for the shell inside
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" >out 2>err </dev/null &
	pid=$!
	reap
}
was_killed() { echo "status $status"; cat err; [ "$status" -eq 137 ]; }
says() { # FILE: that it was killed with the memory it took
	cat "$1"
	grep -qE '[3-5][0-9](\.[0-9]+)? MiB .* in [3-5][0-9] blocks' "$1" && grep -qi 'killed' "$1"
}

# what grows there is told when the limit of the group, not the memory of the machine, is reached
mkfifo fifo.in
# shellcheck disable=SC2016 # for the shell inside
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=report=never \
	"$victims/victim-live" grow <fifo.in >out 2>err &
pid=$!
exec 9>fifo.in
within 5 grep -q ready out
"$build/snapshot/leakwatch-snapshot" --json --interval=0.1 "$pid" >ticks.json 2>ticks.err 9>&- &
ok 'a viewer tells when the limit will be reached' \
	within 5 grep -qE '"reason":"[^"]*(not levelling off|slowing down); the [0-4]?[0-9](\.[0-9]+)? MiB left run out in ' ticks.json
let_go
reap
wait

mkdir logs
inside env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="log_path=$work/logs/%p" "$victims/victim-die" eat
ok 'the OOM killer ends it' was_killed
ok 'the cleaner reports what it held' within 20 says "logs/$pid"

inside "$launcher" --stay "$victims/victim-die" eat
ok 'a launcher that stays ends with its status' was_killed
ok 'and reports on stderr' says err

if unshare -fpi --kill-child --mount-proc true 2>/dev/null; then
	inside unshare -fpi --kill-child --mount-proc "$launcher" --stay "$victims/victim-die" eat
	ok 'so it does as process 1 of a container' was_killed
	ok 'and reports on stderr' says err
	inside unshare -fpi --kill-child --mount-proc "$launcher" --black_box="$work/box" "$victims/victim-die" eat
	"$build/snapshot/leakwatch-snapshot" box >told 2>&1
	ok 'the black box tells what it held' says told
else
	skip 'containers' 'unshare of pid and ipc namespaces is not allowed here'
fi
nothing_left
done_testing
