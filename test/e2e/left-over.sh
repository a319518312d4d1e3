#!/bin/sh
# SPDX-License-Identifier: MIT
# Nothing survives a watched process: no queue, no segment, no process of ours, 5 seconds later.
# usage: left-over.sh begin FILE | end FILE   begin notes what is there, end names what came since.
set -eu

list() {
	for kind in msg shm; do
		awk -v kind=$kind 'NR > 1 { print kind, $1, $2 }' /proc/sysvipc/$kind 2>/dev/null || :
	done
	for process in /proc/[0-9]*; do
		read -r name <"$process/comm" || continue
		case $name in
		leakwatch*) echo "process $name ${process#/proc/}" ;;
		esac
	done 2>/dev/null
}

case $1 in
begin) list | sort >"$2" ;;
end)
	tries=0
	while list | sort | comm -13 "$2" - >"$2.new" && [ -s "$2.new" ] && [ $tries -lt 50 ]; do
		tries=$((tries + 1))
		sleep 0.1 # nothing tells of the end of a stranger's object
	done
	sed 's/^/left over: /' "$2.new"
	! [ -s "$2.new" ]
	;;
esac
