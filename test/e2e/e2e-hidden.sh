#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Memory that only grows and is freed by exit is no leak to see at exit: it is reported as held; killed
# meanwhile, as growing. What fills and stops, or is steady, is neither. A forked child has a past of its own.
. "$(dirname "$0")/cleaner-lib.sh"

is_held() { # FUNCTION
	exits 0
	prints done
	has_verdict held "$1"
	has_field leaked_bytes 0
	says "Held: .* in [0-9]+ blocks"
	says "  held: \+[0-9.]+ [A-Za-z]+/s for [0-9.]+ m?s, p < 0\.[0-9]+, (not levelling off|slowing down); freed only after exit began"
	says '^LeakWatch: .* leaked nothing; 1 site grew and was freed only by exit'
	nothing_dropped
}

# one thread adds to a list which exit frees
watch "$victims/victim-hidden" list
is_held add
# the text alone: the library itself finds that there is something to say
env LD_PRELOAD="$library" "$victims/victim-hidden" list >out 2>err
says 'Held: '
# N producers, fewer consumers, exit frees the rest
watch "$victims/victim-hidden" queue
is_held add

# both, killed while they run
for how in list queue; do
	rm -f json/*
	start "$victims/victim-hidden" $how 1.5 kill
	kill -KILL "$pid"
	reap
	let_go
	ok "$how: reported" within 2 is_reported "$pid"
	has_verdict growing add
	ok "$how: killed" has "$pid" '"state":"killed"'
	ok "$how: with a reason" grep -qE '"reason":"\+[0-9.]+ [A-Za-z]+/s for ' "json/$pid.json"
done

OPTIONS=report=always watch "$victims/victim-hidden" cache
exits 0
has_verdict bounded fill
says '  bounded: grew by [0-9.]+ .* until .* after the start, flat since'
watch "$victims/victim-hidden" steady
exits 0
nothing_leaks
env LD_PRELOAD="$library" "$victims/victim-hidden" steady 0.8 >out 2>err
silent

OPTIONS=follow=yes watch "$victims/victim-hidden" forked
exits 0
has_reports 2
clean add # the parent frees its list before exit
of_child() { python3 - json/*.json <<'P'
import json, sys
reports = [json.load(open(path)) for path in sys.argv[1:]]
pids = {r['pid'] for r in reports}
child, = [r for r in reports if r['ppid'] in pids]
grown = [s for s in child['sites'] if s['verdict'] == 'held']
print(child['seconds'], [(s['verdict'], s['blocks'], s['history'][0]) for s in grown])
# its own time and its own blocks
sys.exit(not (len(grown) == 1 and grown[0]['history'][0][0] < 0.5 and grown[0]['history'][0][1] < 300000
              and child['seconds'] < 2.5))
P
}
# a machine that stands still for half of its second and a half makes a step of its growth
for _ in 1 2 3; do
	of_child >/dev/null && break
	OPTIONS=follow=yes watch "$victims/victim-hidden" forked
done
ok "the child's past is its own" of_child
nothing_left
done_testing
