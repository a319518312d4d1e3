#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The child of a watched process comes up at its first allocation: before, it leaves nothing; afterwards nothing is missing.
. "$(dirname "$0")/cleaner-lib.sh"

mkdir logs
# as_child COMMAND...: of a watched shell; $pid, $status, and its report, if any, in logs/$pid
as_child() {
	rm -f logs/*
	# shellcheck disable=SC2016 # for the shell inside
	LD_PRELOAD="$library" LEAKWATCH_OPTIONS="log_path=$work/logs/%p" \
		bash -c '"$@" & echo $! >pid; wait $!; echo $? >status' bash "$@" >out 2>err
	read -r pid <pid
	read -r status <status
}
ends() { echo "status $status"; [ "$status" -eq "$1" ]; }
tells() { cat "$1"; grep -q "$2" "$1"; }
# the reports that there are, but the shell's own
reports() { grep -lE 'victim-late|victim-sandbox' logs/* 2>/dev/null | wc -l; }

as_child "$victims/victim-late" fork
ok 'fork: its own status' ends 3
ok 'one report' test "$(reports)" -eq 1
ok 'not its own' test ! -e "logs/$pid"
ok 'the child lost a block' grep -q '50 bytes in 1 block' logs/*

as_child "$victims/victim-late" vfork
ok 'vfork: its own status' ends 3
ok 'one report' test "$(reports)" -eq 1
ok 'what it lost after a child that shared its memory had allocated' tells "logs/$pid" '150 bytes in 3 blocks'

for asked in prctl syscall seccomp; do
	as_child "$victims/victim-sandbox" "$asked" kill
	ok "a sandbox by $asked before the first allocation: its own status" ends 7
	ok 'the report' within 20 tells "logs/$pid" '180 bytes in 6 blocks'
done

# while it has not allocated
rm -f pid
mkfifo fifo.out
LD_PRELOAD="$library" LEAKWATCH_OPTIONS="log_path=$work/logs/%p" python3 -c '
import os, sys
pid = os.posix_spawn(sys.argv[1], [sys.argv[1], "idle"], os.environ)
open("pid", "w").write(f"{pid}\n")
os.waitpid(pid, 0)' "$victims/victim-late" >fifo.out 2>err &
read -r _ <fifo.out
within 20 test -s pid
read -r pid <pid
has_no_region() { awk -v pid="$pid" 'NR > 1 && $5 == pid { print; n++ } END { exit n }' /proc/sysvipc/shm; }
ok 'it has no region' has_no_region
"$build/snapshot/leakwatch-snapshot" --once "$pid" >told 2>&1
ok 'the viewer says why' tells told 'is watched, but has no region that others can see'
kill -TERM "$pid"
wait 2>/dev/null
ok 'it has no report' test ! -e "logs/$pid"
nothing_left
done_testing
