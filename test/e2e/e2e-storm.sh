#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that forks all the time, closes all descriptors and counts its children does not notice viewers that
# come, stop, are killed at any moment, several at once, of it and of its children; nor is it held up by them.
# usage: e2e-storm.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

OPTIONS=report=never start "$victims/victim-storm" 4
is_over() { grep -q children out || ! kill -0 "$pid"; }
nr_viewers=0
while ! is_over; do
	viewers=
	for how in "--json --interval=0.1" "--columns --interval=0.1 --count=2" "--once" "--interval=0.2 --save=watch.lw"; do
		# shellcheck disable=SC2086 # flags
		"$snapshot" $how "$pid" >>"seen$((nr_viewers % 4))" 2>>errors 9>&- &
		viewers+=" $!"
		disown $! 2>/dev/null # the shell says nothing of its end
		nr_viewers=$((nr_viewers + 1))
	done
	# a child of it, whichever there is: most are gone by then
	for child in $(ps -o pid= --ppid "$pid"); do timeout 20 "$snapshot" --columns "$child" >/dev/null 2>&1 9>&-; done
	sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
	for viewer in $viewers; do
		case $((RANDOM % 3)) in
		0) kill -KILL "$viewer" ;;
		1) kill -STOP "$viewer" && sleep 0.1 && kill -CONT "$viewer" && kill -TERM "$viewer" ;;
		2) kill -TERM "$viewer" ;;
		esac 2>/dev/null
	done
done
reap
ok 'nothing of what it looks at was other than alone' is_status 7
ok 'it went on forking' grep -qE '^[1-9][0-9]+ children' out
ok 'and was watched live meanwhile' grep -q '\[live' seen0 seen1
echo "# $nr_viewers viewers, $(grep children out)"
let_go
zombies_apart() { ps -eo stat=,args= | awk -v what="$victims/victim-storm" '!/^Z/ && index($0, what) && !/awk/ { print; n++ } END { exit n > 0 }'; }
ok 'no helper stays' within 5 zombies_apart
nothing_left
done_testing
