#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# However a process is born, it reports its own losses under its own pid, and its parent's report is as if it
# had none; threads by the thousand, and forks while other threads allocate.
. "$LW_SOURCE/test/e2e/lib.sh"

# the children are waited for by the parent, but for a daemon
within() {
	local end=$((SECONDS + 30))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { "$@"; return; }
		sleep 0.05
	done
}
nr_reports_is() { find json -name '*.json' | wc -l; [ "$(find json -name '*.json' | wc -l)" -eq "$1" ]; }
each_child_loses() { # BYTES BLOCKS NR
	python3 - "$@" json/*.json <<-'P'
		import json, sys
		bytes, blocks, nr = map(int, sys.argv[1:4])
		reports = [json.load(open(path)) for path in sys.argv[4:]]
		def losses(report, function):
		    return [(s['bytes'], s['blocks']) for s in report['sites'] if s['blocks'] and s['verdict'] != 'runtime'
		            and any(f.get('function') == function for f in s['frames'])]
		children = [r for r in reports if not losses(r, 'first_loses')]
		lost = [losses(r, 'child_loses') for r in children]
		print(len(reports), lost)
		sys.exit(not (len({r['pid'] for r in reports}) == len(reports) == nr + 1 and lost == [[(bytes, blocks)]] * nr))
	P
}
born() { # HOW NR OTHERS: so many children that report, and are counted
	watch "$victims/victim-births" "$1"
	exits 5
	prints "children $3"
	ok "$1: each process has a report" within nr_reports_is $(($2 + 1))
	leaks 200 2 first_loses
	nothing_dropped
	[ "$2" -eq 0 ] || ok "$1: each child its own loss, and no other" each_child_loses 30 1 "$2"
}

born clone 1 1
born spawn 4 4
born daemon 1 1
born threads 0 0
leaks 48000 2000 thread_loses
born forks 10 10
done_testing
