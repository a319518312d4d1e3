#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# However cleaners start, end and are killed, there is one, and no region is forgotten.
. "$(dirname "$0")/cleaner-lib.sh"

# until it is gone: one that has not yet been woken to die still has its door open
kill_cleaners() {
	cleaners | xargs -r kill -KILL
	within 5 has_cleaners 0
}

# fifty at once
pids=()
mkfifo gate
for ((i = 0; i < 50; i++)); do
	env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" \
		"$victims/victim-killed" pause <gate >>out &
	pids+=($!)
done
exec 8>gate
are_ready() { [ "$(grep -c ready out)" -eq 50 ]; }
ok 'fifty start' within 10 are_ready
ok 'one cleaner is left of the race' within 2 has_cleaners 1
{
	kill -KILL "${pids[@]}"
	wait "${pids[@]}"
} 2>/dev/null
exec 8>&-
are_reported() { echo "$(find json -name '*.json' | wc -l) reports"; [ "$(find json -name '*.json' | wc -l)" -eq 50 ]; }
ok 'all fifty are reported' within 20 are_reported
no_more_than_one() { [ "$(nr_cleaners)" -le 1 ]; } # those that write reports are gone
ok 'the cleaner is no more than one' within 1 no_more_than_one
nothing_left

# cleaners by hand: the second one goes at once and says nothing
start "$victims/victim-killed" pause
within 2 has_cleaners 1
"$cleaner" >out 2>&1
ok 'a second cleaner ends with 0' test $? -eq 0
ok 'and says nothing' is_empty out
ok 'the first is there' has_cleaners 1

# the cleaner is killed: its target is an orphan until the next process comes
rm -f json/*
orphan=$pid
ok 'the cleaner is dead' kill_cleaners
kill -KILL "$orphan"
reap
let_go
! is_reported "$orphan"
ok 'nobody is there to report' test $? -eq 0
env LD_PRELOAD="$library" /bin/true
ok 'the next process brings a cleaner, and the report' within 2 is_reported "$orphan"
ok 'with all in it' has_losses
nothing_left

# the same while the target lives: the new cleaner holds it too
rm -f json/*
start "$victims/victim-killed" pause
within 2 has_cleaners 1
kill_cleaners
env LD_PRELOAD="$library" /bin/true
within 1 has_cleaners 1
sleep 2.5 # longer than a cleaner without work stays
ok 'a cleaner with a target stays' has_cleaners 1
kill -KILL "$pid"
reap
let_go
ok 'and reports it' within 1 is_reported "$pid"
nothing_left

# processes that come when the cleaner is about to go, around the moment it does: each is reported
rm -f json/*
for ((i = 0; i < 12; i++)); do
	start "$victims/victim-killed" pause
	kill -KILL "$pid"
	reap
	let_go
	sleep "1.$((50 + RANDOM % 50))"
done
are_all() { echo "$(find json -name '*.json' | wc -l) reports"; [ "$(find json -name '*.json' | wc -l)" -eq 12 ]; }
ok 'no region is forgotten at the end of a cleaner' within 2 are_all
nothing_left

# killed again and again while processes start and die
rm -f json/*
for ((i = 0; i < 60; i++)); do
	env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" \
		"$victims/victim-killed" abort </dev/null >/dev/null
	[ $((i % 3)) -ne 0 ] || kill_cleaners
done 2>/dev/null
env LD_PRELOAD="$library" /bin/true
are_sixty() { echo "$(find json -name '*.json' | wc -l) reports"; [ "$(find json -name '*.json' | wc -l)" -eq 60 ]; }
ok 'sixty deaths are reported in spite of twenty deaths of cleaners' within 20 are_sixty
nothing_left

# its semaphores are removed: it makes new ones, or leaves the place to another
start "$victims/victim-killed" pause
within 2 has_cleaners 1
ipcrm -s "$(awk 'NR > 1 && $4 == 3 { print $2 }' /proc/sysvipc/sem)" 2>/dev/null
env LD_PRELOAD="$library" /bin/true
ok 'one cleaner again' within 2 has_cleaners 1
kill -KILL "$pid"
reap
let_go
ok 'it reports' within 1 is_reported "$pid"
nothing_left
done_testing
