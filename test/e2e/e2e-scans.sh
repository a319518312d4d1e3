# SPDX-License-Identifier: MIT
# When a search for lost memory is made and when not: again and again with scan_every, never where the machine or the control
# group has not the room, which is said; and what was lost for a moment only is not accused.
# shellcheck shell=bash
. "$LW_SOURCE/test/e2e/lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot
victim=$victims/victim-scans

start() {
	[ -p in ] || mkfifo in
	: >out
	LD_PRELOAD=$library LEAKWATCH_OPTIONS=log_path=/dev/null:$OPTIONS "$victim" brief <in >out 2>err &
	pid=$!
	OPTIONS=
	exec 3>in
	for _ in $(seq 2000); do
		grep -q ready out && return
		sleep 0.01
	done
}

stop() {
	echo q >&3
	exec 3>&-
	wait "$pid"
}

# when was the last search of the running process? Nobody asks for one
searched_at() {
	timeout 60 "$snapshot" --once --json "$pid" 2>/dev/null | grep -o '"scan":{"state":"done","at_s":[0-9.]*'
}

searches_again() {
	local before now=
	before=$(searched_at)
	for _ in $(seq 300); do
		now=$(searched_at)
		[ -n "$now" ] && [ "$now" != "$before" ] && return
		sleep 0.1
	done
	echo "before: $before, now: $now"
	return 1
}

mkdir -p json
OPTIONS=freeze=ptrace start
for _ in 1 2 3 4 5 6 7 8; do
	timeout 60 "$snapshot" --leaks --json "$pid" >json/0.json 2>err
	judge part lost 0 0 make_brief >seen 2>&1 || break
done
ok 'what was lost for a moment is not accused' judge part lost 0 0 make_brief
ok 'what stays lost is' judge part lost 333 1 lose
stop

OPTIONS=scan_every=1s start
ok 'with scan_every it searches' searches_again
ok 'and again' searches_again
stop

# ---- killed meanwhile ----

children_of() { awk '{ print $1 }' "/proc/$1/task/$1/children" 2>/dev/null; }
are_gone() { # not even as what is left for a parent to look at: then the memory is the system's again
	for one in $keeper $scanner; do
		[ ! -d "/proc/$one" ] || grep -q '^State:.Z' "/proc/$one/status" || return 1
	done
}

: >out
LD_PRELOAD=$library LEAKWATCH_OPTIONS=report=never "$build/test/bench/bench-heap" 32 400 <in >out 2>err &
pid=$!
exec 3>in
until grep -q ready out; do sleep 0.01; done
timeout 60 "$snapshot" --leaks --json "$pid" >/dev/null 2>&1 &
asking=$!
for _ in $(seq 2000); do
	keeper=$(children_of "$pid")
	scanner=$(children_of "${keeper:-0}")
	[ -n "$scanner" ] && break
	kill -0 $asking 2>/dev/null || break # over already
	sleep 0.01
done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
for _ in $(seq 200); do are_gone && break; sleep 0.1; done
ok 'a search ends with the process it searches' are_gone
wait "$asking"
exec 3>&-

# ---- room ----

refused() {
	ok "$1: not searched" judge part unfreed 333 1 lose
	says 'Not known what is lost: .* there is not enough free memory'
}

# a sixteenth of this is more than the machine has
much=$(($(sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024 * 20))
watch "$victim" room "$much"
if [ "$status" -eq 0 ]; then refused 'memory of the machine'; else skip 'memory of the machine' 'so much cannot be allocated'; fi

# limit NAME: a control group of 64 MiB, of version 1 or 2
group=
for folder in /sys/fs/cgroup/memory "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
	group=$folder/leakwatch-test.$$
	mkdir "$group" 2>/dev/null || { group=; continue; }
	for limit in memory.limit_in_bytes memory.max; do
		[ -w "$group/$limit" ] && echo $((64 << 20)) >"$group/$limit" && break 2
	done 2>/dev/null
	rmdir "$group"
	group=
done
if [ -n "$group" ]; then
	inside() { watch bash -c "echo \$\$ >'$group/cgroup.procs' && exec '$victim' room $1"; }
	inside 300
	ok 'what a control group has room for is searched' judge part lost 333 1 lose
	inside 3000
	refused 'memory of the control group'
	for _ in $(seq 100); do rmdir "$group" 2>/dev/null && break; sleep 0.1; done
else
	skip 'memory of the control group' 'no group can be made here'
fi
done_testing
