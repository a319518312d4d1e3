#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# /proc is missing, another's, or hides what is not ours (hidepid=2); the root is another, or cannot be written
# to: each ends as it would, is reported as well as can be, and leaves nothing.
# usage: e2e-no-proc.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
if [ -z "${LW_OWN_MOUNTS:-}" ]; then
	if [ "$(id -u)" -eq 0 ] && unshare --mount --pid --fork --kill-child --mount-proc true 2>/dev/null; then
		export LW_OWN_MOUNTS=1 LW_OUTER_WORK="$work"
		unshare --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
		exit
	fi
	skip 'other mounts' 'not root, or no mount namespace to be had here'
	done_testing
fi
chmod 755 "$work"
chmod 777 json
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# in the background as $user, $pid; its input is held open until let_go
begin() {
	rm -rf fifo.in out json/*
	mkfifo fifo.in
	chmod 666 fifo.in
	"${user[@]}" env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" "$@" <fifo.in >out 2>err &
	pid=$!
	exec 9>fifo.in
	within 20 grep -q ready out
}
has_json() { python3 "$LW_SOURCE/test/e2e/judge.py" json leak 192 3 lose; }
one_report() { ls json; [ "$(find json -name '*.json' | wc -l)" -eq 1 ]; }
# goes and comes: an exit and a kill, each with its report
lives() { # NAME COMMAND...
	local name=$1
	shift
	begin "$@"
	let_go
	reap
	ok "$name: its status" is_status 7
	ok "$name: it is reported" within 10 one_report
	ok "$name: rightly" has_json
	begin "$@"
	sleep 0.7 # the cleaner has looked at it by then, and must not take it for dead
	ok "$name: it is not taken for dead" test -z "$(find json -name '*.json')"
	kill -KILL "$pid"
	reap
	let_go
	ok "$name: killed, it is reported" within 10 one_report
	ok "$name: rightly" has_json
}
objects_of_all() { awk 'FNR > 1 { print FILENAME, $1, $2 }' /proc/sysvipc/*; }
none_is_left() { objects_of_all; [ -z "$(objects_of_all)" ]; }

# ---- hidepid ----

can_nobody() { "${as_nobody[@]}" test -r "$library" -a -x "$victims/victim-poor" -a -x "$cleaner"; }
if can_nobody && mount -o remount,hidepid=2 /proc 2>/dev/null; then
	user=("${as_nobody[@]}")
	hides() { ! "${as_nobody[@]}" test -e /proc/1; }
	ok 'others are hidden in /proc' hides
	lives 'hidepid' "$victims/victim-poor" none
	lives 'hidepid, not to be traced' "$victims/victim-poor" hidden
	ok 'hidepid: nothing is left' within 5 none_is_left
	mount -o remount,hidepid=0 /proc
else
	skip 'hidepid' 'the build is hidden from other users, or /proc cannot be mounted so'
fi

# ---- another root, which has none of our programs ----

user=()
mkdir empty
lives 'chroot' "$victims/victim-poor" chroot "$work/empty"
ok 'chroot: nothing is left' within 5 none_is_left

# ---- nothing can be written ----

mkdir tmp
mount -t tmpfs -o ro none tmp
lives 'a read-only /tmp' env TMPDIR="$work/tmp" "$victims/victim-poor" none
lives 'a missing /tmp' env TMPDIR="$work/nothing" "$victims/victim-poor" none
OPTIONS="log_path=$work/tmp/log"
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$OPTIONS" "$victims/victim-poor" none </dev/null >out 2>err
status=$?
OPTIONS=
ok 'a report for a file system that is read-only: its status' is_status 7
ok 'it is said' has_line err "leakwatch: cannot write $work/tmp/log: Read-only file system"
ok 'and the report is on stderr' matches err '^SUMMARY: LeakWatch: 192 byte'
umount tmp
ok 'nothing is left' within 5 none_is_left

# ---- the /proc of other processes, then none; from here on this shell is as blind as the rest ----

umount -l /proc
lives "another's /proc" "$victims/victim-poor" none
mount -t tmpfs none /proc
ok 'there is no /proc' test ! -e /proc/self
lives 'no /proc' "$victims/victim-poor" none
for stay in 0 1; do
	"$build/preload/leakwatch" --stay=$stay --log_path="$work/launched" "$victims/victim-poor" none </dev/null >out 2>err
	status=$?
	ok "no /proc, launched, stay=$stay: its status" is_status 7
	ok 'and its report' matches launched '^SUMMARY: LeakWatch: 192 byte'
	rm -f launched
done
umount /proc
ok 'nothing is left' within 5 none_is_left
done_testing
