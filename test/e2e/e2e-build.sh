#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A build of many short processes, two at a time: what leaks has its report, nothing is on what the tools
# print, statuses are as they were, one cleaner serves all, nothing is left. By hand also with thousands:
# usage: e2e-build.sh [BUILD_DIR [NUMBER]]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
number=${2:-${LW_TARGETS:-60}}
if ! command -v make >/dev/null; then
	skip 'a build' 'no make'
	done_testing
fi

# Each target runs a shell that captures what a tool prints on both streams, one that leaks and one that does
# not, and notes the statuses; a few tools fail, die or are killed.
cat >Makefile <<'M'
targets := $(addprefix t,$(shell seq $(NUMBER)))
all: $(targets)
	@echo made $(words $^)
$(targets):
	@seen=$$($(LEAK) 2 10 3 2>&1); echo "$$? $$seen" >out.$@; seen=$$(/bin/true 2>&1); echo "$$? $$seen" >>out.$@; \
	case $@ in *7) seen=$$($(DIE) kill 2>&1); echo "$$? $$seen" >>out.$@;; *5) $(DIE) _exit 2>>out.$@; echo "$$?" >>out.$@;; esac
M
want() { # TARGET
	echo '3 done'
	echo '0 '
	case $1 in *7) echo '137 ' ;; *5) echo 3 ;; esac
}
make_it() { "$@" make -j2 "NUMBER=$number" "LEAK=$victims/victim-leak" "DIE=$victims/victim-die" >made 2>err </dev/null; }

began=${EPOCHREALTIME/./}
most_cleaners=0
make_it "$launcher" --log_path="$work/lw.%p" &
make=$!
while kill -0 $make 2>/dev/null; do
	now=$(nr_cleaners)
	[ "$now" -le $most_cleaners ] || most_cleaners=$now
	sleep 0.2
done
wait $make
status=$?
took_s=$(((${EPOCHREALTIME/./} - began) / 1000000))
ok 'make ends as it would' is_status 0
ok 'it prints what it would' has_line made "made $number"
ok 'and no more' test "$(wc -l <made)" -eq 1
has_no_line_of_ours() { ! grep -h 'eak[Ww]atch\|SUMMARY' made out.*; }
ok 'nothing of ours is on what tools print' has_no_line_of_ours
outputs_are() {
	local i
	for ((i = 1; i <= number; i++)); do
		want "t$i" | cmp -s - "out.t$i" || { echo "t$i:"; cat "out.t$i"; return 1; }
	done
}
ok 'their statuses and outputs are theirs' outputs_are
nr_reports() { grep -lE "command: [^ ]*/$1" lw.* 2>/dev/null | wc -l; }
nr_sevens=$(seq "$number" | grep -c '7$')
nr_fives=$(seq "$number" | grep -c '5$')
has_reports() { # PROGRAM NR
	echo "$(nr_reports "$1") reports, not $2"
	[ "$(nr_reports "$1")" -eq "$2" ]
}
ok "each of the $number that leaked has its report" within 20 has_reports 'victim-leak' "$number"
all_say_it() { [ "$(grep -lxF 'SUMMARY: LeakWatch: 20 byte(s) leaked in 2 allocation(s).' lw.* | wc -l)" -eq "$number" ]; }
ok 'which says what it lost' all_say_it
ok "and each of the $nr_sevens that were killed" within 20 has_reports 'victim-die kill' "$nr_sevens"
ok "and of the $nr_fives that left at once" has_reports 'victim-die _exit' "$nr_fives"
ok 'true has none' has_reports 'true' 0
ok "one cleaner at most ($most_cleaners)" test $most_cleaners -eq 1
nothing_left
echo "# $number targets in $took_s s, $(find . -name 'lw.*' | wc -l) reports"

# the same where reports go nowhere: not a file, not a line
rm -f lw.* out.*
make_it "$launcher" --report=never
status=$?
ok 'without reports: make ends as it would' is_status 0
ok 'statuses and outputs are theirs' outputs_are
nothing_left
done_testing
