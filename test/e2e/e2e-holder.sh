# SPDX-License-Identifier: MIT
# Who holds a block: the variable or the thread at the root, the owners on the way, the class of an object. What the
# program asked to ignore, or kept from being recorded, accuses nobody.
# shellcheck shell=bash
. "$LW_SOURCE/test/e2e/lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

start() {
	[ -p in ] || mkfifo in
	: >out
	LD_PRELOAD=$library LEAKWATCH_OPTIONS=log_path=/dev/null "$victims/victim-holder" "$@" <in >out 2>err &
	pid=$!
	exec 3>in
	for _ in $(seq 2000); do
		grep -q ready out && return
		sleep 0.01
	done
}

ask() {
	mkdir -p json
	rm -f json/*
	for _ in $(seq 50); do # on a busy machine not all threads stop in time
		timeout 60 "$snapshot" --leaks --json "$pid" >json/0.json 2>err
		asked=$?
		grep -q '"approximate":true' json/0.json || break
	done
	timeout 60 "$snapshot" --once "$pid" >text 2>>err
}

stop() {
	echo q >&3
	exec 3>&-
	wait "$pid"
}

# PATH=VALUE... of one example of a block of this many bytes, as Python sees it
example() {
	python3 - "$@" <<'EOF'
import json, sys
size, *wanted = sys.argv[1:]
report = json.load(open('json/0.json'))
shown = [(s['verdict'], e) for s in report['sites'] for e in s.get('examples', []) if e['bytes'] == int(size)]
print(json.dumps(shown, indent=1))
sys.exit(not any(all(eval(w, {'verdict': v, 'e': e}) for w in wanted) for v, e in shown))
EOF
}

says_text() {
	cat text
	grep -qE "$1" text
}

start
ask
ok 'a lost object: its class and first bytes' example 48 'verdict == "lost"' 'e["class"] == "Session"' \
	'len(e["first"]) == 64' '"root" not in e'
ok 'the way from a variable' example 48 'verdict == "reachable"' 'e["class"] == "Session"' \
	'e["root"]["variable"] == "the_table"' 'e["nr_owners"] == 2' 'e["owners"][0]["offset"] == 16' \
	'e["owners"][1]["offset"] % 8 == 0'
ok 'the stack of a thread, and its frame' example 777 'e["root"]["kind"] == "stack"' 'e["root"]["thread"] > 0' \
	'"hold_on_stack" in e["root"]["text"]' 'e["nr_owners"] == 0'
ok 'of a long way the first and the last owners, in their order' example 333 'e["nr_owners"] == 40' \
	'e["root"]["variable"] == "the_list"' \
	'[o["offset"] for o in e["owners"]] == [8 * i for i in (*range(6), *range(34, 40))]'
ok 'the text names the class' says_text '48 bytes, .* old, a Session$'
ok 'what only an ignored block points to is not lost' judge part lost 0 0 make_kept
ok 'nor lost through it' judge part indirect 0 0 make_kept
has_part lost 48 1 lose_session
stop

start paused
ask
ok 'what a block that is not recorded points to is not lost' judge part lost 0 0 make_kept
ok 'and the rest is found' judge part lost 48 1 lose_session
stop
done_testing
