#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What cannot be watched is told clearly: wrong numbers, processes of others, a number that is somebody else's
# now, other versions, damaged files, terminals that can do nothing. And the list of what can be.
# usage: e2e-strangers.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

# refuses STATUS PATTERN ARGUMENT...: one line on stderr, nothing on stdout
refuses() {
	local wanted=$1 pattern=$2
	shift 2
	timeout 20 "${as[@]}" "$snapshot" "$@" >seen 2>errors 9>&-
	status=$?
	refused() {
		echo "status $status"
		cat errors seen
		[ $status -eq "$wanted" ] && [ ! -s seen ] && [ "$(wc -l <errors)" -eq 1 ] && grep -qE -- "$pattern" errors
	}
	ok "$*: $pattern" refused
}
as=()

# ---- numbers ----

for how in --columns --once; do
	refuses 1 'no process 0$' $how 0
	refuses 1 'no process 4194303$' $how 4194303
	refuses 2 '99999999999 is not a PID' $how 99999999999
	refuses 1 'cannot read 12x: No such file' $how 12x
	refuses 1 "process $$ is not watched; start it with .leakwatch PROGRAM" $how $$
done
refuses 2 'which process' --columns

# ---- the list ----

"$snapshot" --list >list
ok 'nothing is watched: the list says so' matches list 'no watched process'
OPTIONS=report=never start "$victims/victim-live" grow
is_listed() {
	"$snapshot" --list >list
	matches list "^ +$pid +[0-9.]+ m?s +[0-9.]+ KiB .*victim-live"
}
ok 'the list has the process, its age, what it holds, its program' within 5 is_listed

# ---- processes of others ----

is_other_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
if [ "$(id -u)" -eq 0 ] && is_other_user test -x "$snapshot" 2>/dev/null; then
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	refuses 1 'the region of process [0-9]+ belongs to another user' --columns "$pid"
	refuses 1 'the region of process [0-9]+ belongs to another user' --once "$pid"
	refuses 1 'process [0-9]+ belongs to another user' --columns $$
	"${as[@]}" "$snapshot" --list >list
	ok "another user's process is not in the list" matches list 'no watched process'
	as=()
else
	skip "another user's process" 'not root, or the build is hidden from others'
fi

# ---- another version ----

# poke SEGMENT OFFSET NUMBER: 32 bits of a shared segment
poke() {
	python3 -c '
import ctypes, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(int(sys.argv[1]), None, 0)
ctypes.memmove(at + int(sys.argv[2]), int(sys.argv[3]).to_bytes(4, "little"), 4)' "$@"
}
if [ -c /dev/full ]; then
	timeout 20 "$snapshot" --interval=0.1 --count=2 --save=/dev/full "$pid" >/dev/null 2>errors 9>&-
	ok 'a disk that is full is told' grep -q 'cannot write /dev/full: No space left' errors
fi
segment=$(objects | comm -13 objects.before - | awk '/^shm/ { print $3 }')
timeout 20 "$snapshot" --interval=0.1 --count=2 --save=good.lw "$pid" >/dev/null 9>&-
poke "$segment" 8 77
for how in --columns --once; do
	refuses 1 "region of process $pid: .*77.* [0-9]+" $how "$pid"
done
poke "$segment" 8 "$(sed -nE 's/^\tLW_REGION_VERSION = ([0-9]+),.*/\1/p' "$source_root/preload/share/region.h")"
timeout 20 "$snapshot" --columns "$pid" >seen 9>&-
ok 'and with its own version again it is read' matches seen '^leakwatch'

# ---- files ----

python3 - <<'P'
data = bytearray(open('good.lw', 'rb').read())
open('empty.lw', 'wb').close()
open('short.lw', 'wb').write(data[:10])
open('text.lw', 'w').write('no records at all\n' * 9)
data[8:12] = (77).to_bytes(4, 'little')
open('version.lw', 'wb').write(data)
P
for how in --columns --once; do
	refuses 1 'cannot read version.lw: .*77.* [0-9]+' $how version.lw
	refuses 1 'cannot read empty.lw: it holds no records' $how empty.lw
	refuses 1 'short.lw' $how short.lw
	refuses 1 'cannot read text.lw: it holds no LeakWatch records' $how text.lw
	refuses 1 'cannot read none.lw: No such file' $how none.lw
	refuses 1 'cannot read /: Is a directory' $how /
done
cut_anywhere() {
	local bytes cut got
	bytes=$(stat -c %s good.lw)
	for cut in 1 15 16 17 100 1000 $((bytes / 3)) $((bytes / 2)) $((bytes - 1)); do
		head -c "$cut" good.lw >cut.lw
		for how in --columns --once '--columns --json'; do
			# shellcheck disable=SC2086 # flags
			timeout 20 "$snapshot" $how cut.lw >cut.out 2>errors
			got=$?
			[ $got -le 1 ] && { [ -s errors ] || grep -q 'not complete' cut.out; } && continue
			echo "cut at $cut, $how: status $got"
			cat errors
			return 1
		done
	done
}
ok 'cut anywhere, a file is read as far as it goes, and that is said' cut_anywhere
let_go
reap

# ---- a number that is somebody else's now ----

cat >reuse.sh <<'S'
sleep 1000 <fifo.in & exec 9>fifo.in
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=report=never "$victims/victim-live" grow <fifo.in >out 9>&- 2>err &
pid=$!
until grep -q ready out; do sleep 0.02; done
cleaner() { for p in /proc/[0-9]*; do read -r name <"$p/comm" && [ "$name" = leakwatch-clean ] && echo "${p#/proc/}"; done; }
until [ -n "$(cleaner)" ]; do sleep 0.02; done
kill -STOP "$(cleaner)" # the region stays
kill -KILL $pid
wait $pid 2>/dev/null
"$snapshot" --columns $pid >gone.out 2>&1
for _ in $(seq 500); do
	echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid
	sleep 1000 &
	[ $! -eq $pid ] && break
	kill $!
done
[ $! -eq $pid ] || exit 9
"$snapshot" --columns $pid >reused.out 2>&1
echo $? >reused.status
exit 0
S
export library victims snapshot
rm -f fifo.in
mkfifo fifo.in
if unshare --ipc --pid --fork --kill-child --mount-proc true 2>/dev/null && [ -w /proc/sys/kernel/ns_last_pid ]; then
	timeout 60 unshare --ipc --pid --fork --kill-child --mount-proc bash reuse.sh 2>/dev/null
	ok 'the number was given again' [ $? -eq 0 ]
	ok 'before that: what the dead process left' matches gone.out 'was killed'
	ok 'then: that process is not watched' matches reused.out 'process [0-9]+ is not watched'
	ok 'and the status is 1' [ "$(cat reused.status)" = 1 ]
else
	skip 'a pid that is reused' 'no pid namespace to be had, or no say in its numbers'
fi
nothing_left

# ---- no queue to be had ----

if [ -n "${LW_OWN_IPC:-}" ] && [ -w /proc/sys/kernel/msgmni ]; then
	most_queues=$(cat /proc/sys/kernel/msgmni)
	echo 0 >/proc/sys/kernel/msgmni
	OPTIONS=report=never:verbose=1 start "$victims/victim-live" grow
	ok 'no queue is to be had: verbose says so' matches err 'queue: none .error 28., viewers read the region instead'
	timeout 60 "$snapshot" --interval=0.1 --count=2 "$pid" >seen 9>&-
	ok 'the region is read, and the viewer says why' matches seen 'read from its region: it has no message queue'
	ok 'with what it holds' matches seen 'grow_here'
	echo "$most_queues" >/proc/sys/kernel/msgmni
	let_go
	reap
	ok 'it ends as it would alone' is_status 7
	nothing_left
else
	skip 'no queue to be had' 'no IPC namespace of its own, or no say in its limits'
fi

# ---- terminals ----

if ! command -v tmux >/dev/null; then
	skip 'terminals' 'no tmux'
	done_testing
fi
OPTIONS=report=never start "$victims/victim-live" grow
screen() { tmux -L "lw$$" "$@"; }
trap 'screen kill-server 2>/dev/null; cd /; rm -rf "$work"' EXIT
# in_terminal WIDTH HEIGHT COMMAND: ends with "status N"
in_terminal() { screen -f /dev/null new-session -d -x "$1" -y "$2" "$3; echo status \$?; exec sleep 60" 9>&-; }
shows() { screen capture-pane -p | grep -qE -- "$1"; }
close_terminal() {
	screen kill-server
	within 5 eval '! screen list-sessions'
} 2>/dev/null
in_terminal 100 30 "env TERM=dumb '$snapshot' $pid"
ok 'TERM=dumb: one report' within 5 shows 'in grow_here'
ok 'and no more' within 5 shows '^status 0'
close_terminal
in_terminal 100 30 "env TERM=nonsense '$snapshot' $pid"
ok 'an unknown terminal: what to do' within 5 shows 'cannot use terminal nonsense; try --columns'
close_terminal
in_terminal 80 24 "env TERM=xterm LC_ALL=POSIX '$snapshot' $pid"
ok 'no UTF-8: all the same in ASCII' within 5 shows '[_.,=+*#-]{3,} +[0-9]+s [a-z]+ +grow_here'
close_terminal
for size in '20 5' '10 3' '2 2' '1 1'; do
	# shellcheck disable=SC2086 # two numbers
	in_terminal $size "env TERM=xterm '$snapshot' $pid; screen=\$?; tmux -L lw$$ resize-window -x 80 -y 24; (exit \$screen)"
	sleep 0.3
	ok "a terminal of $size: q ends it" within 5 eval 'screen send-keys q; shows "status 0"'
	close_terminal
done
let_go
reap
ok 'it ends as it would alone' is_status 7
nothing_left
done_testing
