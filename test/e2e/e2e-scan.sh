# SPDX-License-Identifier: MIT
# What nothing points to any more is lost, what only that points to is lost indirectly, the rest is reachable;
# at the end of a process and in a running one, which does not notice.
# shellcheck shell=bash
. "$LW_SOURCE/test/e2e/lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot

verdicts() {
	has_part lost 333 1 lose
	has_part lost 80 1 make_head
	has_part indirect 200 2 make_tail
	has_part reachable 80 1 keep_one
	has_part reachable 80000 1000 fill_list
	has_part lost 0 0 fill_list
}

OPTIONS=exitcode=7 watch "$victims/victim-reach"
exits 7
verdicts
says '^Lost: 333 bytes in 1 block'
says 'drags along 200 bytes in 2 blocks'
says '^Still reachable, so not counted as leaked:'
says '^Lost: 413 bytes in 2 blocks; lost indirectly: 200 bytes in 2 blocks; still reachable:'
says '^SUMMARY: LeakWatch: 613 byte'
nothing_dropped

watch "$victims/victim-empty"
has_part lost 0 0 keep_empty

OPTIONS=scan=never watch "$victims/victim-reach"
has_part unfreed 333 1 lose
has_part unfreed 80000 1000 fill_list
never_says 'reachable'

# ---- a running process ----

# What came of it stands in json/0.json, its status in $asked.
ask() {
	mkdir -p json
	rm -f json/*
	for _ in $(seq 50); do # on a busy machine not all threads stop in time
		timeout 60 "$snapshot" --leaks --json "$pid" >json/0.json 2>err
		asked=$?
		grep -q '"approximate":true' json/0.json || break
	done
}

is_asked() {
	cat err
	[ "$asked" -eq "$1" ]
}

mkfifo in
LD_PRELOAD=$library LEAKWATCH_OPTIONS="json=$work/end.json:log_path=/dev/null" "$victims/victim-reach" wait <in >out 2>err &
pid=$!
exec 3>in
until grep -q ready out; do :; done
for _ in 1 2 3 4 5; do
	ask
	ok 'asked for leaks, the status is 1' is_asked 1
	verdicts
done
echo q >&3
exec 3>&-
wait $pid
prints 'interrupted 0 times'
rm -rf json
mkdir json
mv end.json json/0.json
has_part reachable 80 1 keep_one
has_part reachable 80000 1000 fill_list
has_field lost_blocks 2 # in whatever verdict: it ran for a while
has_field indirect_blocks 2
done_testing
