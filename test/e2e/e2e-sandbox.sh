#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that takes system calls from itself: we make none from then on, and the cleaner reports.
# Each call of ours would kill it (kill, brk), or be counted (count); with errno it would be answered by EPERM.
# usage: e2e-sandbox.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"

run() { # ASKED ANSWER [thread]
	rm -f json/*
	env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="json=$work/json/%p.json" "$victims/victim-sandbox" "$@" \
		</dev/null >out 2>err 3>&- &
	pid=$!
	reap
}
is_reported_right() {
	python3 "$LW_SOURCE/test/e2e/judge.py" json leak 180 6 lose &&
		python3 "$LW_SOURCE/test/e2e/judge.py" json clean work
}

"$victims/victim-sandbox" prctl kill >out
if [ $? -eq 9 ]; then
	skip 'sandboxes' 'seccomp is not to be had here'
	done_testing
fi
for asked in prctl syscall seccomp; do
	for answer in kill errno count brk; do
		[ $asked = prctl ] || [ $answer != brk ] || continue
		run $asked $answer
		ok "$asked, $answer: its status" is_status 7
		ok "$asked, $answer: no call of ours" has_line out 'refused 0'
		ok "$asked, $answer: the cleaner reports" within 2 is_reported "$pid"
		ok "$asked, $answer: all of it" is_reported_right
		ok "$asked, $answer: how it ended" has "$pid" '"state":"exit"'
	done
done
for answer in kill count; do
	run prctl $answer thread
	ok "a thread's, $answer: its status" is_status 7
	ok "a thread's, $answer: no call of ours" has_line out 'refused 0'
	ok "a thread's, $answer: the cleaner reports" within 2 is_reported "$pid"
	ok "a thread's, $answer: all of it" is_reported_right
done
nothing_left
done_testing
