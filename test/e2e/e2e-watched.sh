#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that are odd to watch: locks, thousands of threads, one image after the other, a loop without
# allocations, every end there is; how often it ticks; and what a queue looks like while nobody watches.
# usage: e2e-watched.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot
victim=$victims/victim-watched

json() { # FILE EXPRESSION: about the list t of the ticks in it
	python3 -c '
import json, sys
t = [json.loads(line) for line in open(sys.argv[1]) if line.endswith("\n")]
good = eval(sys.argv[2])
if not good:
    print(len(t), [{k: v for k, v in tick.items() if k != "sites"} for tick in t[-3:]])
sys.exit(not good)' "$@"
}
begin_viewer() {
	"$snapshot" --json "$@" >ticks.json 2>ticks.err 9>&- &
	viewer=$!
}
stop_viewer() {
	kill -KILL "$viewer"
	wait "$viewer"
} 2>/dev/null
helper_of() { ps -o pid=,stat= --ppid "$1" | awk '$2 !~ /^Z/ { print $1 }'; }
has_no_helper() { [ -z "$(helper_of "$pid")" ]; }
has_ended() { ! kill -0 "$viewer" 2>/dev/null; }
is_live() { json ticks.json 't and t[-1]["how"] == "[live]"'; }

# ---- the queue ----

OPTIONS=report=never start "$victim" run
queue=$(objects | comm -13 objects.before - | awk '/^msg/ { print $3 }')
of_queue() { # FIELD: permissions and the time of the last message, by its number in the kernel's table
	awk -v id="$queue" -v field="$1" '$2 == id { print $field }' /proc/sysvipc/msg
}
ok 'one queue, for this user only' [ "$(of_queue 3)" = 600 ]
sleep 0.3
ok 'nobody watches: nothing was ever sent' [ "$(of_queue 12)" = 0 ]

# ---- how often ----

begin_viewer --interval=0.1 "$pid"
within 5 json ticks.json 'len(t) > 20'
stop_viewer
ok 'every 0.1 s' json ticks.json '0.08 <= sorted(b["seconds"] - a["seconds"] for a, b in zip(t, t[1:]))[10] <= 0.15'
begin_viewer --interval=3600 "$pid"
ok 'every hour: the first at once' within 2 is_live
sleep 1
ok 'and no other' json ticks.json 'len(t) == 1'
stop_viewer
for wrong in 0.05 3601 -1 x 1x ''; do
	"$snapshot" --interval=$wrong "$pid" >seen 2>errors 9>&-
	ok "every '$wrong' is refused, with what may be" grep -q 'interval' errors
done
let_go
reap
ok 'it ends as it would alone' is_status 7

# ---- locks ----

OPTIONS=report=never start "$victim" locks "$work/lock"
for _ in 1 2 3; do
	begin_viewer --interval=0.1 "$pid"
	within 5 is_live
	stop_viewer
	within 5 has_no_helper
done
begin_viewer --interval=0.1 "$pid"
within 5 is_live
let_go
reap
ok 'helpers came and went: its lock on a file is still its' is_status 7
wait "$viewer"

# ---- rights ----

# a server that gave them up may look at itself no more but in /proc, and there only if nothing is hidden
# shellcheck disable=SC2016 # for the shell inside
with_proc=(unshare --mount sh -c 'mount -t proc -o "hidepid=$0" proc /proc && exec "$@"')
if [ "$(id -u)" -eq 0 ] && "${with_proc[@]}" 0 true 2>/dev/null; then
	OPTIONS=report=never start "${with_proc[@]}" 0 "$victim" drop
	begin_viewer --interval=0.1 "$pid"
	within 5 is_live
	helper=$(helper_of "$pid")
	within 5 json ticks.json 'len(t) > 20'
	ok 'a server that gave up its rights after its start is watched' is_live
	ok 'by one helper all the while' [ "$(helper_of "$pid")" = "$helper" ]
	stop_viewer
	ok 'which then goes' within 5 has_no_helper
	let_go
	reap
	ok 'it ends as it would alone' is_status 7
	nothing_left 'and leaves nothing'

	OPTIONS=report=never start "${with_proc[@]}" 2 "$victim" drop
	begin_viewer --interval=0.1 "$pid"
	ok 'where processes are hidden its region is read, and the viewer says so' \
		within 5 json ticks.json 't and "region: its helper could not stay" in t[-1]["how"]'
	stop_viewer
	let_go
	reap
	ok 'it ends as it would alone' is_status 7
else
	skip 'a server that gave up its rights' 'not root, or no mount namespace to be had'
fi

# ---- threads ----

OPTIONS=report=never start "$victim" threads 1000
begin_viewer --interval=0.2 "$pid"
ok 'a thousand threads at a time, new ones all the while: it is watched' \
	within 10 json ticks.json 'len(t) > 9 and t[-1]["how"] == "[live]" and t[-1]["summary"]["total_allocs"] > 4000'
let_go
reap
within 5 has_ended
ok 'it ends as it would alone' is_status 7
ok 'each allocation of each thread was counted, and the last state stays' \
	json ticks.json 't[-1]["state"] == "exit" and t[-1]["sites"][0]["function"] == "allocate" and t[-1]["summary"]["dropped"] == 0'

# ---- one image after the other ----

images_over() { tr '\0' ' ' </proc/"$pid"/cmdline | grep -q 'execs 0 '; }
OPTIONS=report=never start "$victim" execs 60
nr_gone=0
for _ in 1 2 3 4 5 6; do
	timeout 2 "$snapshot" --json --interval=0.1 "$pid" >ticks.json 2>ticks.err 9>&-
	json ticks.json 't[-1]["state"] == "exec"' >/dev/null 2>&1 && nr_gone=$((nr_gone + 1))
	images_over && break
done
ok 'images that go: the viewer says so' [ $nr_gone -gt 0 ]
ok 'it becomes what it wants' within 10 images_over
begin_viewer --interval=0.1 "$pid"
ok 'the last image is watched' within 5 is_live
stop_viewer
let_go
reap
ok 'it ends as it would alone' is_status 7

# ---- no answer ----

OPTIONS=report=never start "$victim" spin
begin_viewer --interval=0.2 "$pid"
ok 'a loop without allocations: its region is read after a second, and the viewer says so' \
	within 3 json ticks.json 'len(t) >= 2 and "region: the process does not answer" in t[-1]["how"]'
stop_viewer
let_go
reap
ok 'it ends as it would alone' is_status 7

# ---- ends ----

for how in exit _exit quick_exit abort exec; do
	OPTIONS=report=never start "$victim" ends $how
	begin_viewer --interval=0.1 "$pid"
	within 5 is_live
	let_go
	reap
	within 5 has_ended
	case $how in
	exit | exec) wanted='"[exited" in t[-1]["how"] and t[-1]["state"] == "exit"' ;;
	abort) wanted='"was killed" in t[-1]["how"] and t[-1]["state"] == "killed"' ;;
	*) wanted='"ended by '$how'" in t[-1]["how"] and t[-1]["state"] == "'$how'"' ;;
	esac
	ok "$how: the last state stays, with how it ended" \
		json ticks.json "$wanted and t[-1]['sites'][0]['function'] == 'allocate'"
done
nothing_left
done_testing
