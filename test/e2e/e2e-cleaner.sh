#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that is killed, in whatever way, is reported at once by the cleaner, which leaves nothing.
. "$(dirname "$0")/cleaner-lib.sh"

fastest_ms=999999
dies() { # HOW SIGNAL STATUS
	rm -f json/*
	start "$victims/victim-killed" "$1"
	within 5 is_held "$pid"
	[ "$1" != pause ] || kill -KILL "$pid"
	let_go
	reap
	ok "$1: it is reported" within 1 is_reported "$pid"
	[ "$took_ms" -ge $fastest_ms ] || fastest_ms=$took_ms
	ok "$1: the status is its own" test "$status" -eq "$3"
	ok "$1: all is in the report" has_losses
	ok "$1: state killed" has "$pid" '"state":"killed"'
	ok "$1: the frees were counted" has "$pid" '"total_frees":[1-9]'
	[ "$2" -eq 0 ] || ok "$1: signal $2" has "$pid" "\"signal\":$2[,}]"
}

has_exit_info() { # the kernel tells of the status of strangers (Linux 6.15)
	local release
	release=$(uname -r)
	[ "$(printf '6.15\n%s\n' "$release" | sort -V | head -n 1)" = 6.15 ]
}

known=1
has_exit_info || known=0
dies pause $((9 * known)) 137
dies abort $((6 * known)) 134
dies segv $((11 * known)) 139
dies term $((15 * known)) 143
dies group 0 7
# all of them are, unless the machine is busy with something else
ok 'within a second' test $fastest_ms -lt 1000
nothing_left

# one that ends by itself is reported once, by itself
rm -f json/*
start "$victims/victim-killed" exit
let_go
reap
ok 'its own report' has "$pid" '"state":"exit"'
nothing_left

# the cleaner is no child of the process that starts it, has nothing of it open, and is in no session of its
start "$victims/victim-killed" wait
ok 'a cleaner is there' within 2 has_cleaners 1
of_cleaner=$(cleaners)
is_stranger() {
	local parent session link
	read -r parent session < <(sed 's/.*) //' "/proc/$of_cleaner/stat" | awk '{ print $2, $4 }')
	ls -l "/proc/$of_cleaner/fd"
	echo "parent $parent session $session"
	[ "$parent" -ne "$pid" ] && [ "$session" -eq "$of_cleaner" ] || return
	for link in "/proc/$of_cleaner"/fd/*; do
		case $(readlink "$link") in
		/dev/null | anon_inode:* | pidfd:*) ;;
		*) return 1 ;;
		esac
	done
}
ok 'it is a stranger to its target' is_stranger
ok 'it keeps no folder busy' test "$(readlink "/proc/$of_cleaner/cwd")" = /
let_go
reap
ok 'the target has no child to wait for' test "$status" -eq 0

# a reader of its pipe sees the end when the target ends
read_to_end() {
	env LD_PRELOAD="$library" "$victims/victim-killed" "$1" </dev/null | cat
}
ends() { timeout 30 bash -c "$(declare -f read_to_end); read_to_end $1"; }
export library victims
start "$victims/victim-killed" pause # the cleaner stays for its sake
ok 'its pipe ends with it' ends abort
ok 'not with its cleaner' has_cleaners 1
kill -KILL "$pid"
reap
let_go
nothing_left

# a child that still maps the region of its dead parent delays nothing
rm -f json/*
start "$victims/victim-killed" child
kill -KILL "$pid"
reap
ok 'reported while a child lives' within 1 is_reported "$pid"
ok 'and rightly' has_losses
let_go
nothing_left 'nothing is left, though the child lives'

# killed in the middle of its own report
mkdir programs
cat >programs/leakwatch-snapshot <<-SCRIPT
	#!/bin/sh
	echo "\$*" >>$work/runs
	case "\$*" in *--state=exit*) read -r _ <$work/gate ;; esac
SCRIPT
mkfifo gate
exec 8<>gate
chmod +x programs/leakwatch-snapshot
ln -s "$cleaner" programs/
OPTIONS="programs=$work/programs" start "$victims/victim-killed" exit 8<&-
let_go
ok 'its report has begun' within 2 grep -q state=exit runs
kill -KILL "$pid"
reap
ok 'the cleaner begins another' within 2 grep -q state=killed runs
echo >&8
exec 8>&-
nothing_left

# text to log_path; a run that asked for nothing starts no reporter
OPTIONS="log_path=$work/log" start "$victims/victim-killed" pause
kill -KILL "$pid"
reap
ok 'the text goes to log_path' within 1 grep -q '192 bytes' log
let_go
nothing_left

# a short shell script: one cleaner for all, nothing left, nothing said
# shellcheck disable=SC2016 # for the shell that is run
script='i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done'
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=report=never sh -c "$script" >out 2>&1
ok 'two hundred processes say nothing' is_empty out
ok 'and share one cleaner' has_cleaners 1
nothing_left
done_testing
