#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of two threads, killed at random moments: every report is readable and says what the
# program itself had counted, to the operations in flight. usage: kills.sh [BUILD_DIR [NUMBER]]
. "$(dirname "$0")/../e2e/cleaner-lib.sh"
number=${2:-${LW_KILLS:-100}}
mkdir tallies

for ((i = 0; i < number; i++)); do
	rm -f fifo.out
	mkfifo fifo.out
	env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" \
		"$victims/victim-counted" tallies/new >fifo.out </dev/null 2>err &
	pid=$!
	# most after it has begun, some while it comes up
	[ $((i % 5)) -eq 0 ] || read -r _ <fifo.out || :
	sleep "0.0$((RANDOM % 40 + 10))"
	{
		kill -KILL "$pid"
		wait "$pid"
	} 2>/dev/null
	[ ! -e tallies/new ] || mv tallies/new "tallies/$pid"
done
has_all() {
	echo "$(find json -name '*.json' | wc -l) of $(find tallies -type f | wc -l) reports"
	[ "$(find json -name '*.json' | wc -l)" -ge "$(find tallies -type f | wc -l)" ]
}
ok 'most got as far as counting' test "$(find tallies -type f | wc -l)" -gt $((number / 2))
ok "$number kills, each reported" within $((5 + number / 10)) has_all
ok 'the totals are those of the programs' python3 "$LW_SOURCE/test/stress/kills.py" json tallies
nothing_left
done_testing
