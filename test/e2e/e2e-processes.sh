#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fork and exec: each process answers for its own blocks, under its own pid.
. "$LW_SOURCE/test/e2e/lib.sh"

watch "$victims/victim-fork"
exits 0
prints 'child 13'
has_reports 3
leaks 600 6 parent_loses
clean parent_owns
child_leaks 90 3 child_loses
child_leaks 10 1 grandchild_loses
ok 'the child does not answer for its parent' eval '! judge childleak "*" "*" parent_loses'

watch "$victims/victim-exec"
exits 6
prints again
has_reports 1
leaks 11 1 lose_after
clean lose_before

watch "$victims/victim-fds"
exits 0
prints 'descriptors 3 4'
leaks 1920 3 lose

# what a program captures of its children is theirs alone
OPTIONS=report=always watch bash -c \
	'all=$("$0" 2 10 3 2>&1); echo "$? $all"; all=$(sh -c "echo a | cat; exit 4" 2>&1); echo "$? $all"' \
	"$victims/victim-leak"
exits 0
prints '3 done'
prints '4 a'
# a handler that forks in the middle of malloc: both go on with it
OPTIONS=json=own.json watch "$victims/victim-fork-inside"
exits 0
kept=$(sed -n 's/^kept \([0-9]*\), failed 0$/\1/p' out)
ok 'no child failed' [ -n "$kept" ]
rm -rf json
mkdir json
mv own.json json/
leaks $((kept * 32)) "$kept" keep
nothing_dropped
done_testing
