#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The screen of leakwatch-snapshot in a real terminal: what it shows, its keys, resizing, the end of
# what it watches; and a watch saved in a file, and viewers that come and go a hundred times.
# usage: e2e-viewer.sh [BUILD_DIR]
# shellcheck source=test/e2e/cleaner-lib.sh
. "$(dirname "$0")/cleaner-lib.sh"
snapshot=$build/snapshot/leakwatch-snapshot
victim=$victims/victim-live
export LC_ALL=C.UTF-8 TERM=xterm

screen() { tmux -L "lw$$" "$@"; }
show() { screen capture-pane -p; }
shows() { # PATTERN...: lines of all of them on one screen
	local end=$((SECONDS + 30)) now
	until now=$(show) && has_all "$now" "$@"; do
		[ $SECONDS -lt $end ] || { echo "$now"; return 1; }
		sleep 0.05
	done
}
has_all() { # TEXT PATTERN...
	local text=$1 pattern
	shift
	for pattern in "$@"; do grep -qE -- "$pattern" <<<"$text" || return; done
}
press() { screen send-keys "$@"; }
open_screen() { # COMMAND; the terminal's server must not hold the program's input open
	screen -f /dev/null new-session -d -x 80 -y 24 "$@" 9>&- 2>&1
}
is_closed() { ! screen list-sessions; }
close_screen() {
	press q
	within 5 is_closed
}
trap 'screen kill-server 2>/dev/null; cd /; rm -rf "$work"' EXIT

if ! command -v tmux >/dev/null; then
	skip 'the screen' 'no tmux'
	done_testing
fi

# ---- the screen ----

OPTIONS=report=never start "$victim" grow
open_screen "$snapshot $pid"
ok 'the process and its state' shows "leakwatch $pid victim-live +up .*\[live\]"
ok 'totals' shows 'held .* in [0-9]+ .*/s +peak .* rss .* sites'
ok 'the columns, sorted by what is held' shows '>HELD +BLKS +% +TICK +SINCE +SLP/s TREND +OLD VERDICT +WHERE'
ok 'a site with change, trend, age, verdict, function' shows '\+[0-9.]+K? +\+[0-9.]+K .*[▁▂▃▄▅▆▇█]+ +[0-9]+s [a-z]+ +grow_here'
not_wider() { [ "$(show | wc -L)" -le 80 ]; }
ok 'in 80 columns' not_wider
is_on_top() { show | sed -n 5p | grep grow_here; }
ok 'the one that grows comes to the top' within 5 is_on_top
ok 'of two' shows '^1/2 by held'
press s
ok 's: the next sort' shows '>BLKS'
press l
ok 'l: looks for lost memory' shows '^lost: '
press S
ok 'S: back' shows '>HELD'
press S
ok 'and round' shows '>OLD'
press s
# each key is for the row that is then on top: which one is older is for the clock to say
ok 's: round again' shows '>HELD'
ok 'the one that grows is on top as before' within 5 is_on_top
press Enter
ok 'enter: the whole stack' shows '^#0 grow_here .*victim-live.c:[0-9]+' '^#1 main .*victim-live.c:[0-9]+'
press Escape
ok 'esc: the list' shows '^1/2 by held'
press '/'
ok '/: asks' shows 'show only: _'
press grow
ok 'what is typed stands below' shows 'show only: grow_'
press Enter
ok 'one site is left' shows '^1/1 by .* only grow'
press '/'
ok '/: asks again' shows 'show only: grow_'
press Escape
ok 'esc takes the filter away' shows '^[0-9]+/[2-9] by'
press p
ok 'p: paused' shows 'PAUSED'
# not even its clock; a name may still have been on its way
stands_still() {
	first=$(show)
	sleep 1.2
	[ "$first" = "$(show)" ]
}
ok 'nothing moves' within 5 stands_still
first=$(show)
press p
moved() { [ "$(show | sed -n 2p)" != "$(sed -n 2p <<<"$first")" ]; }
ok 'p: it goes on' within 5 moved
ok 'counted since it began' shows 'since ([5-9]s|[1-9][0-9m].*) ago'
since_s() { show | sed -n 's/^since \([0-9]*\)s ago.*/\1/p' | grep . || echo 60; } # it was minutes
before_s=$(since_s)
is_less() { [ "$(since_s)" -lt "$before_s" ]; }
press r
ok 'r: since now' within 5 is_less
press b
ok 'b: exact numbers' shows ' [0-9]{5,} '
press b
ok 'b: rounded' shows '^ +[0-9.]+[KM] .*grow_here'
press '?'
ok '?: help' shows 'sort by the next'
press '?'
ok '?: the list' shows '^1/[2-9] by held'
press w
ok 'w: saved' shows 'saved in leakwatch-'
saved=$(ls leakwatch-*.lw)
"$snapshot" --once "$saved" >report
ok 'and what was saved is a report' grep -q grow_here report
press +
ok '+: faster' shows 'every 0.5 s'
screen resize-window -x 132 -y 40
ok 'resized: wider' shows 'grow_here victim-live.c:[0-9]+$'
screen resize-window -x 50 -y 8
narrow() { [ "$(show | wc -L)" -le 50 ] && [ "$(show | wc -l)" -le 8 ] && show | grep '>HELD'; }
ok 'resized: small' within 5 narrow
for _ in {1..40}; do
	screen resize-window -x $((RANDOM % 200 + 1)) -y $((RANDOM % 60 + 1))
	press "$(printf '%s\n' Enter '?' G s | shuf -n 1)"
done
screen resize-window -x 80 -y 24
press Escape
press Escape
ok 'resized all the while, with keys: the list' shows '^[12]/2 by '
kill -STOP "$pid"
ok 'the process is stopped' shows '(live, stopped|region: the process is stopped)'
kill -CONT "$pid"
let_go
reap
ok 'it ended: how, and its last state' shows '\[exited\]'
ok 'is still there' shows 'peak'
ok 'q' close_screen
nothing_left

# ---- any frame of a stack ----

OPTIONS=report=never start "$victims/victim-watched" run
open_screen "$snapshot $pid"
ok 'three sites' shows '^1/3 by held'
press '/'
press at_the_top
press Enter
ok 'a text is found in the whole stack' shows '^1/1 by held  only at_the_top' ' allocate victim-w'
press Enter
ok 'which has it' shows '^#0 allocate ' '^#1 at_the_top '
ok 'q' close_screen
let_go
reap

# ---- what is lost ----

OPTIONS=report=never start "$victims/victim-holder"
open_screen "$snapshot $pid"
ok 'the largest is another' shows '^1/[0-9]+ by held' '^ +777 .* hold_on_stack'
press l
ok 'l: how much, and where' shows '^lost: 48 bytes in 1 block, all of it here' ' lost +lose_session'
press Enter
ok 'enter: there' shows '^nothing points to 48 bytes in 1 block any more' '^#[0-9] lose_session'
is_not_held() { ! show | grep 'held by'; }
ok 'and nothing holds it' is_not_held
press Escape
ok 'the list, at that row' shows '^([2-9]|1[0-9])/[0-9]+ by held'
ok 'q' close_screen
let_go
reap

# ---- colour ----

OPTIONS=report=never start "$victim" grow
open_screen "$snapshot $pid"
in_red() { screen capture-pane -pe | grep -P '\x1b\[[0-9;]*31m.*grow_here'; }
ok 'what grows is red' within 10 in_red
nothing_else() { [ "$(screen capture-pane -pe | grep -cP '\x1b\[[0-9;]*3[0-7]m')" -eq 1 ]; }
ok 'and nothing else has a colour' within 5 nothing_else
ok 'q' close_screen
open_screen "env NO_COLOR=1 $snapshot $pid"
ok 'NO_COLOR: it grows' shows 'growing +grow_here'
no_colour() { ! screen capture-pane -pe | grep -P '\x1b\[[0-9;]*3[0-7]m'; }
ok 'without a colour' no_colour
ok 'q' close_screen
let_go
reap

# ---- a terminal that knows nothing ----

OPTIONS=report=never start "$victim" grow
open_screen "env TERM=vt100 LC_ALL=C $snapshot $pid"
ok 'no UTF-8: the trend in ASCII' shows '[_.,=+*#-]{3,} +[0-9]+s [a-z]+ +grow_here'
ok 'q' close_screen
env TERM=dumb "$snapshot" "$pid" </dev/null >plain
ok 'no terminal: one report' grep -q 'grow_here' plain

# ---- a watch in a file ----

within 30 eval 'sleep 0.2; "$snapshot" --columns "$pid" | grep -q growing'
timeout 60 "$snapshot" --interval=0.2 --count=5 --save=watch.lw "$pid" >columns
"$snapshot" --columns watch.lw >again
blocks() { grep -c '^leakwatch ' "$1"; }
ok 'a saved watch has its ticks' [ "$(blocks again)" -eq 5 ]
ok 'with the same sums' [ "$(grep '^held' columns | cut -d' ' -f2-6)" = "$(grep '^held' again | cut -d' ' -f2-6)" ]
"$snapshot" --once watch.lw >report
ok 'and is a report, too' grep -q grow_here report
ok 'which judges by all that is in the file' grep -q '^Growing: ' report
ok 'a tick that is the first has no rate' eval '[ "$(grep -c "  -/s  " columns)" -eq 1 ]'
open_screen "$snapshot watch.lw"
ok 'and a screen' shows '\[saved in watch.lw\]'
ok 'with its trend' shows '[▂▃▄▅▆▇█]+.*grow_here'
ok 'q' close_screen
ok 'nothing is missing in it' has_no_match report 'not complete'
head -c $(($(stat -c %s watch.lw) - 20)) watch.lw >cut.lw
"$snapshot" --columns cut.lw >cut 2>err
status=$?
ok 'a file cut short does no harm' [ $status -lt 128 ]
ok 'and is said to be' matches err 'cut.lw is not complete: its end was cut off'
"$snapshot" --once cut.lw >report
ok 'in a report, too' matches report 'not complete: its end was cut off'
python3 -c '
import random, subprocess, sys
data = open("watch.lw", "rb").read()
random.seed(1)
for i in range(40):
    bad = bytearray(data)
    for _ in range(20):
        bad[random.randrange(len(bad))] ^= 1 << random.randrange(8)
    open("bad.lw", "wb").write(bad)
    for way in (["--columns"], ["--once"], ["--columns", "--json"]):
        done = subprocess.run([sys.argv[1], *way, "bad.lw"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        assert 0 <= done.returncode < 128, (i, way, done.returncode)
' "$snapshot"
status=$?
ok 'flipped bits do no harm' [ $status -eq 0 ]

# ---- a hundred viewers, one after the other ----

rss() { awk '/^VmRSS/ { print $2 }' /proc/"$pid"/status; }
maps() { wc -l </proc/"$pid"/maps; }
let_go
reap
OPTIONS=report=never start "$victim" work
"$snapshot" --columns "$pid" >/dev/null
"$snapshot" --columns "$pid" >/dev/null
rss_before=$(rss)
maps_before=$(maps)
for _ in $(seq 100); do "$snapshot" --interval=0.1 --count=1 "$pid" >/dev/null; done
grown() {
	echo "rss $rss_before KiB, then $(rss); maps $maps_before, then $(maps)"
	[ "$(rss)" -le $((rss_before + 64)) ] && [ "$(maps)" -le $((maps_before + 1)) ]
}
ok 'a hundred viewers that come and go leave nothing behind' grown
let_go
reap
ok 'and the program ends as it would alone' is_status 7
nothing_left
done_testing
