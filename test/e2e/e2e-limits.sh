#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Writing a report where it cannot be written does not end, stop or change the program: pipes nobody reads,
# limits of file size; and options and folders as people have them.
. "$LW_SOURCE/test/e2e/lib.sh"
leak=$victims/victim-leak

# run OPTIONS COMMAND...
run() {
	local options=$1
	shift
	timeout -k 1 30 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$options" "$@" >out 2>err </dev/null
	status=$?
}
summary='^SUMMARY: LeakWatch: 30 byte\(s\) leaked in 3 allocation\(s\)\.$'
raw_summary='^SUMMARY: LeakWatch: [0-9]+ byte\(s\)'

# the report that the library writes itself, without the reporter
mkfifo nobody
for option in log_path json; do
	run "programs=/nonexistent:$option=$work/nobody" "$leak" 3 10 6
	exits 6
	prints done
done
run programs=/nonexistent:log_path="$work/nobody" "$leak" 3 10 6
says "$raw_summary"
# one that is read
(cat nobody >read) &
reader=$!
run programs=/nonexistent:log_path="$work/nobody" "$leak" 3 10 6
exits 6
{ timeout 5 bash -c ': >nobody'; } 2>/dev/null # had nobody written, the reader would wait for ever
wait $reader
ok 'who reads a pipe gets the report, or stderr does' eval 'cat read err | grep -qE "$raw_summary"'

limited() { # BLOCKS OPTIONS: file size, in units of 1024
	(
		ulimit -f "$1"
		exec timeout -k 1 30 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$2" "$leak" 3 10 6 >/dev/null 2>err </dev/null
	)
	status=$?
}
for blocks in 0 1; do
	limited $blocks "programs=/nonexistent:log_path=$work/limited.$blocks"
	exits 6
	limited $blocks "log_path=$work/limited.$blocks:json=$work/limited.json"
	exits 6
	# a region in a file needs more than that: shared memory serves
	limited $blocks "black_box=$work/box.$blocks:log_path=$work/boxed.$blocks"
	exits 6
	rm -f "box.$blocks"
done
# stderr that is a file and may not grow: SIGXFSZ is not for the program
(
	ulimit -f 0
	exec timeout -k 1 30 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=programs=/nonexistent "$leak" 0 10 6 >/dev/null 2>full </dev/null
)
status=$?
exits 6

# more options than fit: one line, those that fit count, and the program runs
long=report=auto:log_path=$work/long.txt
for ((i = 0; i < 500; i++)); do long+=":min_bytes=1"; done
ok 'the options are longer than 4 KiB' [ ${#long} -gt 4096 ]
run "$long" "$leak" 3 10 6
exits 6
prints done
ok 'the report is where they say' eval 'cat long.txt err | grep -qE "$summary"'
run "suppressions=$(printf 'x%.0s' $(seq 5000))" "$leak" 3 10 6
exits 6
prints done
says "$summary"
ok 'and few lines about it' eval '[ "$(grep -c "^leakwatch" err)" -le 3 ]'

# folders with a quote, a blank, a colon in their names
for folder in "it's" 'a "quoted" one' 'a b'; do
	mkdir "$folder"
	(
		cd "$folder" || exit 1
		timeout -k 1 30 "$launcher" --json="$PWD/report.json" --log_path="$PWD/report.txt" "$leak" 3 10 6 \
			>../out 2>../err </dev/null
	)
	status=$?
	exits 6
	ok "a folder named $folder: the text" matches "$folder/report.txt" "$summary"
	ok "a folder named $folder: the JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/report.json"
done
done_testing
