#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No processes, descriptors, memory, disk, queues or segments to be had: the program runs and ends as it would,
# and the report is written in the best way that is left, or it is said that it could not be.
# usage: e2e-poor.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
chmod 755 "$work"

# run COMMAND...: its end is waited for at most half a minute
run() {
	rm -f json/*
	timeout -k 1 30 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="${ASKED-json=$work/json/%p.json}" "$@" </dev/null >out 2>err
	status=$?
	unset ASKED
}
raw='raw report of pid [0-9]+$'
raw_losses='^192 byte\(s\) in 3 block\(s\) by malloc not freed'
frame='^    #0 0x[0-9a-f]+ \(.*/victim-poor\+0x[0-9a-f]+\)$'
tells_raw() { # NAME FILE
	ok "$1: a raw report" matches "$2" "$raw"
	ok "$1: of all it lost" matches "$2" "$raw_losses"
	ok "$1: with module and offset" matches "$2" "$frame"
	ok "$1: and its sum" matches "$2" '^SUMMARY: LeakWatch: [0-9]+ byte'
}
has_json() { python3 "$LW_SOURCE/test/e2e/judge.py" json leak 192 3 lose; }
json_is_written() { [ -n "$(find json -name '*.json')" ]; }

# ---- descriptors ----

ASKED='' run "$victims/victim-poor" files
ok "no descriptor to be had: its status" is_status 7
tells_raw "no descriptor to be had" err
ok 'and nothing else is said' has_no_match err 'shared libraries|ld\.so'
too_few='leakwatch: the limit of open files is too low for leakwatch-snapshot: raw report of pid [0-9]+'
ok 'but why' matches err "^$too_few"'$'
# where there is a file to write to, the cleaner does it, as well as if nothing were missing
run "$victims/victim-poor" files
ok 'no descriptor, but a file is named: its status' is_status 7
ok 'the cleaner reports' within 5 json_is_written
ok 'rightly' has_json
ok 'with the end as it was' grep -q '"state":"exit"' json/*.json
ok 'and nothing is said' is_empty err
ASKED="log_path=$work/log.%p:programs=/nonexistent" run "$victims/victim-poor" files
ok 'neither descriptor nor programs: its status' is_status 7
tells_raw 'neither descriptor nor programs' err
run "$victims/victim-poor" full
ok 'all descriptors open: its status' is_status 7
ok 'the report is written' has_json
nothing_left

# a file size, too: nothing can be said either, since stderr is a file
no_file_is_too_large() {
	ASKED="json=$work/json/%p.json:log_path=$work/json/text" run "$victims/victim-poor" small
	ok 'no file may grow: its status' is_status 7
	ok 'the cleaner reports' within 5 json_is_written
	ok 'rightly' has_json
	ok 'in words too' within 5 matches json/text '^SUMMARY: LeakWatch: 192 byte'
	ok 'and nothing is said' is_empty err
}
no_file_is_too_large
nothing_left
no_file_is_too_large # with a cleaner that has yet to come
nothing_left

# ---- stderr ----

for how in closed reused; do
	run "$victims/victim-poor" $how
	ok "stderr $how: its status" is_status 7
	ok "the report is written" has_json
	ok 'nothing is said' is_empty err
	ASKED='' run "$victims/victim-poor" $how
	ok "stderr $how, and no file named: its status" is_status 7
done
ok 'the file in its place has what the program wrote' has_line data mine
ok 'and no more' test "$(wc -l <data)" -eq 1
nothing_left
# a pipe that is full, and one without a reader
piped() { # FULL?
	python3 - "$1" "$library" "$victims/victim-poor" <<-'P'
		import fcntl, os, subprocess, sys
		full, library, program = int(sys.argv[1]), *sys.argv[2:]
		reader, writer = os.pipe()
		if full:
		    os.set_blocking(writer, False)
		    try:
		        while True:
		            os.write(writer, b'x' * 4096)
		    except BlockingIOError:
		        os.set_blocking(writer, True)
		else:
		    os.close(reader)
		done = subprocess.run([program, 'none'], env={'LD_PRELOAD': library}, stdin=subprocess.DEVNULL,
		                      stdout=subprocess.DEVNULL, stderr=writer, timeout=30)
		print('status', done.returncode)
	P
}
piped 1 >out 2>err
ok 'stderr is a full pipe: its status' has_line out 'status 7'
piped 0 >out 2>err
ok 'stderr is a pipe without a reader: its status' has_line out 'status 7'
nothing_left

# ---- disk ----

ASKED=log_path=/dev/full run "$victims/victim-poor" none
ok 'a full disk: its status' is_status 7
ok 'it is said' has_line err 'leakwatch: cannot write /dev/full: No space left on device'
ok 'and the report is on stderr' matches err '^SUMMARY: LeakWatch: 192 byte\(s\) leaked in 3 allocation\(s\)'
if mkdir small && mount -t tmpfs -o size=4k none small 2>/dev/null; then
	trap 'cd /; umount "$work/small"; rm -rf "$work"' EXIT
	head -c 4096 /dev/zero >small/filler
	for programs in '' /nonexistent; do
		ASKED="log_path=$work/small/log:programs=$programs" run "$victims/victim-poor" none
		ok "a full file system${programs:+, no reporter}: its status" is_status 7
		ok 'the report is on stderr' matches err '^SUMMARY: LeakWatch: [0-9]+ byte\(s\) leaked in [1-9]'
		rm -f small/log
	done
else
	skip 'a full file system' 'none can be mounted here'
fi

# ---- memory ----

for how in dry memory; do
	ASKED='' run "$victims/victim-poor" $how
	ok "no memory for our tables ($how): its status" is_status 7
	ok 'it is said what is missing, though nothing is known to have leaked' matches err '[1-9][0-9]* block.* not recorded'
done
nothing_left

# ---- queues, segments ----

limit_ipc() { [ -n "${LW_OWN_IPC:-}" ] && echo "$2" >"/proc/sys/kernel/$1"; }
try_limit() { # NAME VALUE WHAT KILLED_IS_REPORTED?
	local before
	before=$(cat "/proc/sys/kernel/$1")
	if ! limit_ipc "$1" "$2" 2>/dev/null; then
		skip "no $3" 'the limit cannot be set here'
		return
	fi
	run "$victims/victim-poor" none
	ok "no $3: its status" is_status 7
	ok 'it is reported' has_json
	ok 'nothing else is said' has_no_match err '^leakwatch: '
	rm -f json/*
	start "$victims/victim-killed" pause
	kill -KILL "$pid"
	reap
	let_go
	[ "$4" -eq 0 ] || ok "no $3: a killed process is reported" within 2 is_reported "$pid"
	nothing_left "no $3: nothing is left"
	limit_ipc "$1" "$before"
}
try_limit msgmni 0 'queue' 1
try_limit shmmni 0 'segment' 0
try_limit shmall 1 'shared memory' 0

# removed while it runs
for kind in m q; do # the only one there is
	rm -f json/*
	start "$victims/victim-killed" exit
	within 5 is_held "$pid"
	ipcrm -$kind "$(objects | comm -13 objects.before - | sed -n "s/^$([ $kind = m ] && echo shm || echo msg) [0-9]* //p" | tail -n 1)"
	let_go
	reap
	ok "ipcrm -$kind: its status" is_status 0
	ok 'its report' is_reported "$pid"
	ok 'has all' has_losses
	nothing_left
done

# ---- processes ----

as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if [ "$(id -u)" -ne 0 ]; then
	as_nobody=()
fi
if "${as_nobody[@]}" test -r "$library" -a -x "$victims/victim-poor" 2>/dev/null; then
	chmod 777 json
	for nr in 1 2; do
		ASKED='' run "${as_nobody[@]}" prlimit --nproc=$nr "$victims/victim-poor" none
		ok "$nr processes are allowed: its status" is_status 7
		ok 'it is reported' matches err '^SUMMARY: LeakWatch: [0-9]+ byte\(s\) leaked in [1-9]'
		# else there are others of this user, and a limit is none
		[ "$nr" -eq 2 ] || [ "$(id -u)" -ne 0 ] || tells_raw 'no process to be had' err
	done
	# the cleaner of the second one is there, and may write to a file
	run "${as_nobody[@]}" prlimit --nproc=1 "$victims/victim-poor" none
	ok 'no process, but a file is named: its status' is_status 7
	ok 'it is reported' within 5 json_is_written
	ok 'rightly' has_json
	if [ "$(id -u)" -eq 0 ]; then
		env LEAKWATCH_OPTIONS="json=$work/json/%p.json" LD_PRELOAD="$library" "${as_nobody[@]}" \
			prlimit --nproc=1 "$victims/victim-killed" pause </dev/null >out 2>err &
		pid=$!
		within 5 grep -q ready out
		kill -KILL "$pid"
		reap
	fi
	objects_of_all() { awk 'FNR > 1 { print FILENAME, $1, $2 }' /proc/sysvipc/shm /proc/sysvipc/msg; }
	none_is_left() { objects_of_all; [ -z "$(objects_of_all)" ]; }
	if [ -n "${LW_OWN_IPC:-}" ]; then ok 'nobody leaves anything' within 5 none_is_left; fi
else
	skip 'limits of processes' 'the build is hidden from other users'
fi
nothing_left
done_testing
