#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A reporter that crashes is started once more; one that fails again, hangs or is missing leaves a raw report.
. "$(dirname "$0")/cleaner-lib.sh"

mkdir programs logs
ln -s "$cleaner" programs/leakwatch-cleaner
reporter=$work/programs/leakwatch-snapshot
real=$build/snapshot/leakwatch-snapshot

# the reporter of the next test: a script, which notes each run
reporter_is() {
	rm -rf tries logs json
	mkdir logs json
	printf '#!/bin/bash\necho "$$" >>%q\n%s\n' "$work/tries" "$1" >"$reporter"
	chmod +x "$reporter"
}
kill_one() {
	OPTIONS="programs=$work/programs:log_path=$work/logs/%p"
	start "$victims/victim-killed" pause
	kill -KILL "$pid"
	let_go
	reap
}
nr_tries() { cat tries; [ "$(wc -l <tries)" -eq "$1" ]; }
has_raw() {
	cat "logs/$pid"
	grep -q "raw report of pid $pid, killed" "logs/$pid" && grep -q ' 0x[0-9a-f]* (/.*+0x[0-9a-f]*)' "logs/$pid" &&
		grep -q 'SUMMARY: LeakWatch: 192 byte(s) leaked in 3 allocation(s)' "logs/$pid"
}
are_gone() {
	local one
	while read -r one; do
		! kill -0 "$one" || return 1
	done <tries
}

reporter_is "[ \"\$(wc -l <'$work/tries')\" -gt 1 ] || kill -SEGV \$\$; exec '$real' \"\$@\""
kill_one
ok 'a reporter that crashed: the second one reports' within 20 is_reported "$pid"
ok 'all is in the report' has_losses
ok 'it was started twice' nr_tries 2

reporter_is 'kill -KILL $$'
kill_one
ok 'a reporter that is killed each time: a raw report' within 20 has_raw
ok 'it was started twice' nr_tries 2

reporter_is 'exec sleep 1000'
kill_one
ok 'a reporter that hangs: a raw report' within 30 has_raw
ok 'both are gone' within 5 are_gone

reporter_is ''
rm "$reporter"
kill_one
ok 'no reporter: a raw report' within 20 has_raw
nothing_left

# a report of many sites, written from the region: within a second of the death, in one of three tries
in_time() {
	local tries
	for tries in 1 2 3; do
		OPTIONS="log_path=$work/logs/%p"
		start "$victims/victim-die" many
		kill -KILL "$pid"
		began=${EPOCHREALTIME/./}
		let_go
		reap
		within 20 is_reported "$pid" && within 20 test -s "logs/$pid" || return 1
		took=$(((${EPOCHREALTIME/./} - began) / 1000))
		echo "$took ms"
		[ "$took" -gt 1000 ] || return 0
	done
	return 1
}
has_thousand() {
	python3 -c 'import json, sys; n = sum(s["blocks"] for s in json.load(open(sys.argv[1]))["sites"]), len(
	json.load(open(sys.argv[1]))["sites"]); print(n); sys.exit(n[0] < 1001 or n[1] < 1001)' "json/$pid.json"
}
took=0
in_time >seen 2>&1
ok 'a thousand sites are reported within a second of the death' eval 'cat seen; [ "$took" -gt 0 ] && [ "$took" -le 1000 ]'
ok 'all of them' has_thousand
echo "# $took ms"

# the program's own end waits for it, but not for ever
reporter_is 'exec sleep 1000'
began=$SECONDS
OPTIONS="programs=$work/programs:log_path=$work/logs/%p" watch "$victims/victim-leak" 2 10 3
exits 3
ok 'an end is not kept by a reporter that hangs' test $((SECONDS - began)) -lt 15
ok 'a raw report' grep -q '^20 byte(s) in 2 block(s) by malloc not freed' logs/*
ok 'it is gone' within 5 are_gone
nothing_left
done_testing
