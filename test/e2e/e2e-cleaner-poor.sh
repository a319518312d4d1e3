#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A cleaner inherits the hard limits of the process that comes first: others have their reports all the same, and
# what the limits of a process itself forbid is said, with the reason.
# usage: e2e-cleaner-poor.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
chmod 755 "$work"
chmod 777 json
too_few='leakwatch: the limit of open files is too low for leakwatch-snapshot: raw report of pid [0-9]+'
tells_raw() { # NAME FILE
	ok "$1: a raw report" matches "$2" '^192 byte\(s\) in 3 block\(s\) by malloc not freed'
	ok "$1: and its sum" matches "$2" '^SUMMARY: LeakWatch: [0-9]+ byte'
}
has_json() { python3 "$LW_SOURCE/test/e2e/judge.py" json leak 192 3 lose; }
json_is_written() { [ -n "$(find json -name '*.json')" ]; }
text_is_written() { [ -n "$(find json -name '*.txt' -size +0)" ]; }
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# limited LIMIT VALUE OPTIONS COMMAND...: of $user, under hard limits from its beginning
limited() {
	local limit=$1 value=$2 options=$3
	shift 3
	exec 3>&- 8>&- 9>&-
	ulimit "$limit" "$value"
	exec timeout -k 1 30 "${user[@]}" env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$options" "$@"
}
# killed LIMIT VALUE OPTIONS: without the shell's word about it
killed() { { (limited "$@" "$victims/victim-killed" term </dev/null > >(cat >out)); } 2>/dev/null; }
come_first() { # LIMIT VALUE OPTIONS
	rm -f fifo.in
	mkfifo fifo.in
	limited "$@" "$victims/victim-killed" exit <fifo.in > >(cat >first) 2>&1 &
	first=$!
	exec 8>fifo.in
	within 5 grep -q ready first
	within 5 has_cleaners 1
}
leave() {
	exec 8>&-
	wait $first
}
files() { rm -f json/*; echo "json=$work/json/%p.json:log_path=$work/json/%p.txt"; }
has_text() { cat json/*.txt; grep -qE '^SUMMARY: LeakWatch: 192 byte\(s\) (leaked|held) in 3 allocation' json/*.txt; }
others_are_reported() { # NAME
	killed -c 0 "$(files)"
	ok "$1: another that is killed is reported" within 5 json_is_written
	ok "$1: rightly" within 5 has_json
	ok "$1: and in words" within 5 has_text
	(limited -c 0 "$(files)" "$victims/victim-poor" files </dev/null >out 2>err)
	ok "$1: one without descriptors is reported" within 5 json_is_written
	ok "$1: rightly" within 5 has_json
	ok "$1: two cleaners" has_cleaners 2
}
own_report() { # NAME: what comes of a report that nobody else can write
	local nr
	for nr in 4 6 7; do
		(limited -n $nr "$(files)" "$victims/victim-poor" none </dev/null >out 2>err)
		status=$?
		ok "$1, $nr descriptors: its status" is_status 7
		cat json/*.txt >text 2>/dev/null
		tells_raw "$1, $nr descriptors, where it was asked for" text
		ok "$1, $nr descriptors: and why" matches text "^$too_few"'$'
	done
	(limited -n 5 "$(files)" "$victims/victim-poor" files </dev/null >out 2>err)
	tells_raw "$1, no descriptor, and none for the cleaner" err
	ok "$1: why" matches err "^$too_few"'$'
	ok "$1: and why not in the file" matches err '^leakwatch: cannot write /.*: too many open files$'
	(limited -f 0 "$(files)" "$victims/victim-poor" none </dev/null 2>&1 >/dev/full) | cat >err
	ok "$1, no file may grow from the start: said where it can be" matches err '^leakwatch: cannot write /.*\.txt: File too large'
	ok "$1: with the report" matches err '^SUMMARY: LeakWatch: 192 byte'
	killed -n 5 "$(files)"
	within 5 text_is_written
	cat json/*.txt >text
	ok "$1, 5 descriptors: killed, it is reported" matches text "$too_few, killed"
}
serves_until_another_comes() { # NAME
	local poor pid
	is_deserted
	come_first -n 20 "$(files)"
	poor=$(cleaners)
	(limited -c 0 report=never "$victims/victim-killed" exit </dev/null >out 2>err)
	ok "$1: another cleaner comes" within 5 has_cleaners 2
	kill -KILL "$(cleaners | grep -vx "$poor")"
	pid=$(pgrep -P $first -x victim-killed || echo $first)
	kill -KILL "$pid"
	exec 2>/dev/null
	leave
	exec 2>&3
	ok "$1: and is killed: the poor one reports" within 5 json_is_written
	ok "$1: rightly" within 5 has_json
}
check_firsts() { # NAME LIMIT...
	local name=$1 limit
	shift
	for limit; do
		come_first "${limit% *}" "${limit#* }" report=never
		others_are_reported "$name, ulimit $limit"
		leave
		is_deserted
	done
	own_report "$name"
	serves_until_another_comes "$name"
	is_deserted
}
is_deserted() { ok 'all cleaners go' within 8 has_cleaners 0; }
# without the privilege to raise a hard limit, which not every root has
user=(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource)
"${user[@]}" true 2>/dev/null || user=()
is_deserted
check_firsts root '-n 5' '-f 0' '-s 64'
nothing_left
if [ "$(id -u)" -eq 0 ] && "${as_nobody[@]}" test -r "$library" -a -x "$victims/victim-poor" 2>/dev/null; then
	user=("${as_nobody[@]}")
	check_firsts nobody '-n 7' '-f 0'
else
	skip 'the same as nobody' 'the build is hidden from other users, or this is no root'
fi
user=()
if (ulimit -c 0 && ulimit -c 1) 2>/dev/null; then
	come_first -n 5 report=never
	ok 'with the privilege its cleaner has more descriptors' grep -qE '^Max open files +4096 +4096 ' "/proc/$(cleaners)/limits"
	killed -f 0 "$(files)"
	ok 'and serves others' within 5 json_is_written
	ok 'alone' has_cleaners 1
	leave
else
	skip 'raised limits' 'hard limits cannot be raised here'
fi
nothing_left
done_testing
