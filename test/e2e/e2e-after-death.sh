#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is lost in a process that was killed: found afterwards where somebody watched, else by the last search, else not.
# usage: e2e-after-death.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot
victim=$victims/victim-reach

# The scan of the report: EXPRESSION of s, and of verdicts (function -> verdict -> blocks)
scan() {
	python3 - "json/$pid.json" "$1" <<'EOF'
import json, sys
report = json.load(open(sys.argv[1]))
s, verdicts = report.get('scan'), {}
for site in report['sites']:
    for name in [f.get('function') for f in site['frames'] if f.get('function') in ('lose_many', 'keep_one', 'lose')]:
        verdicts.setdefault(name, {}).setdefault(site['verdict'], 0)
        verdicts[name][site['verdict']] += site['blocks']
print(s, verdicts)
sys.exit(not eval(sys.argv[2]))
EOF
}
kill_it() {
	kill -KILL "$pid"
	reap
	let_go
	within 5 is_reported "$pid"
}
begin() {
	rm -f json/*
	start "$victim" many
}

begin
kill_it
ok 'nobody watched: nothing is known of pointers' scan 's is None and set(verdicts["lose_many"]) == {"unfreed"}'

begin
timeout 120 "$snapshot" --leaks "$pid" >asked 2>&1
kill_it
ok 'what was lost at the last search is so still' scan \
	's["confirmed"] and verdicts["lose_many"] == {"lost": 200} and verdicts["lose"] == {"lost": 1}'
ok 'what was not may be by now' scan 'set(verdicts["keep_one"]) == {"unfreed"}'

begin
"$snapshot" --json --interval=0.2 "$pid" >ticks.json 2>/dev/null 9>&- &
viewer=$!
has_stream() { grep -q '"way":"stream"\|"sites":\[{' ticks.json && ps -o stat= --ppid "$pid" | grep -qv Z; }
ok 'a viewer watches' within 5 has_stream
kill_it
ok 'then its memory is searched after its death' scan \
	's["state"] == "done" and s["approximate"] and verdicts["lose_many"] == {"lost": 200}'
ok 'a few that a register may have held are not accused' scan \
	'set(verdicts["lose"]) == {"reachable"} and set(verdicts["keep_one"]) == {"reachable"}'
kill "$viewer" 2>/dev/null
wait "$viewer" 2>/dev/null
nothing_left
done_testing
