#!/bin/sh
# SPDX-License-Identifier: MIT
# Nothing survives a watched process: no queue, segment, semaphores or process of ours, seconds later.
# usage: left-over.sh begin FILE [FOLDER] | end FILE [FOLDER]
# begin notes what is there, end names what came since: objects whose maker is gone, and
# processes of the programs below FOLDER (so that two builds may be tested at the same time).
set -eu

list() {
	# columns: key id perms and, of a queue, cbytes qnum lspid lrpid; of a segment, size cpid lpid nattch; of semaphores, no maker
	awk 'FNR > 1 { print "queue", $1, $2, $6 }' /proc/sysvipc/msg 2>/dev/null || :
	awk 'FNR > 1 { print "semaphores", $1, $2, 0 }' /proc/sysvipc/sem 2>/dev/null || :
	awk 'FNR > 1 && $7 == 0 { print "segment", $1, $2, $5 }' /proc/sysvipc/shm 2>/dev/null || :
	for process in /proc/[0-9]*; do
		program=$(readlink "$process/exe") || continue # ended, or not ours to look at
		case $program in
		"$folder"/*leakwatch*) echo "process $program ${process#/proc/}" ;;
		esac
	done 2>/dev/null
}

# An object whose maker lives is nobody's left-over yet.
is_alive() {
	[ "$1" -gt 0 ] && [ -d "/proc/$1" ]
}

left_over() {
	list | sort | comm -13 "$1" - | while read -r what name number maker; do
		[ "$what" = process ] || ! is_alive "$maker" || continue
		echo "$what $name $number"
	done
}
folder=$(cd "${3:-/}" && pwd)

case $1 in
begin) list | sort >"$2" ;;
end)
	tries=0
	while left_over "$2" >"$2.new" && [ -s "$2.new" ] && [ $tries -lt 300 ]; do
		tries=$((tries + 1))
		sleep 0.1 # nothing tells of the end of a stranger's object
	done
	sed 's/^/left over: /' "$2.new"
	! [ -s "$2.new" ]
	;;
esac
