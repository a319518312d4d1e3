#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A bad option costs one line that names it, value and range; the default is used, the program runs.
. "$LW_SOURCE/test/e2e/lib.sh"

is_nothing() { # COMMAND...: it prints nothing
	local printed
	printed=$("$@")
	echo "$printed"
	[ -z "$printed" ]
}

complains() { # OPTIONS PATTERN
	timeout 20 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$1" "$victims/victim-leak" 3 10 6 \
		>out 2>err </dev/null
	status=$?
	exits 6
	prints done
	ok "'$1' costs one line" eval 'cat err; [ "$(grep -c "^leakwatch: " err)" -eq 1 ]'
	says "$2"
	says '^SUMMARY: LeakWatch: 30 byte\(s\) leaked in 3 allocation\(s\)\.$'
}

complains depth=0 '^leakwatch: .*depth.*0.*1.*128'
complains depth=fast '^leakwatch: .*depth.*fast'
complains color=blue '^leakwatch: .*color.*blue.*auto.*always.*never'
complains no_such_option=1 '^leakwatch: .*no_such_option'
complains 'min_bytes=12x' '^leakwatch: .*min_bytes.*12x'
complains "json='open" '^leakwatch: .*json'

# the children of the process that was started keep still, unless they are followed
children() { # OPTIONS: five of them, of which some would be said to leak
	timeout 60 env LD_PRELOAD="$library" LEAKWATCH_OPTIONS="$1" sh -c \
		"for i in 1 2 3; do '$victims/victim-leak' 3 10; /bin/true; done; exit 4" >out 2>err </dev/null
	status=$?
	exits 4
}
nr_complaints() { cat err; [ "$(grep -c "^leakwatch: LEAKWATCH_OPTIONS: .*$2" err)" -eq "$1" ]; }
for options in depth=0 depth=0:json=j.%p no_such_option=1; do
	children "$options"
	ok "'$options' is complained of once, whatever is started" nr_complaints 1 "${options%%=*}"
done
children "depth=0:$(printf 'x%.0s' {1..5000})"
ok 'and so is what is too long' nr_complaints 1 'bytes are too many'
children depth=0:follow=victim-leak
ok 'those that are followed may speak' nr_complaints 4 depth

# what verbose says, once, and not for children
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=verbose=1:depth=9 sh -c "'$victims/victim-leak' 0; exit 4" >out 2>err
for what in 'options read: verbose=1:depth=9' 'region: shared memory segment [0-9]+, room for [0-9]+ sites' \
	'queue: number [0-9]+' 'cleaner: .* reports if this process is killed' 'rules: [0-9]+ stacks were walked'; do
	ok "verbose: $what" eval '[ "$(grep -cE "^leakwatch: $what" err)" -eq 1 ] || { cat err; false; }'
done

env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=verbose=1:black_box=box sh -c "'$victims/victim-leak' 0; exit 4" >out 2>err
ok 'a relative path is told once, as it was given' matches err '^leakwatch: options read: verbose=1:black_box=box$'


snapshot=$build/snapshot/leakwatch-snapshot
"$snapshot" --once --suppressions=no-such-file box >out 2>err
ok 'a viewer speaks by its own name' matches err '^leakwatch-snapshot: cannot read suppressions no-such-file: '
"$snapshot" --count=2 --interval=1 box >out 2>err
ok 'a black box has one state' matches err 'box is a black box, which has one state only; --once reports it'
ok 'which is shown' matches out '^leakwatch [0-9]+ .*\[saved in box: it exited\]'

# the manual pages name what --help names
page_lacks() { # COMMAND PAGE
	"$1" --help | sed '/^Used by the library/,$d' | grep -oE -- '--[a-z][a-zA-Z_-]+' | sort -u |
		while read -r option; do
			tr -d '\\' <"$source_root/$2" | grep -qF -e "$option" || echo "$option"
		done
}
ok 'leakwatch-snapshot(1) has all options' is_nothing page_lacks "$snapshot" snapshot/leakwatch-snapshot.1
for what in --version --no- 'leakwatch.h (3)'; do
	ok "leakwatch(1) has $what" eval 'tr -d "\\\\" <"$source_root/preload/leakwatch.1" | grep -qF -e "$what"'
done

# a name that was mistyped is said once, by the one that was started; its children keep still
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=log_path=l.%q.%p sh -c "'$victims/victim-leak' 3 10; exit 4" >out 2>err
is_one_line() { cat err; [ "$(grep -c '^leakwatch: log_path: %q stands for nothing' err)" -eq 1 ]; }
ok 'an unknown % letter costs one line' is_one_line
ok 'and stands for itself' eval 'ls l.%q.*'

for depth in 1 2 128; do
	OPTIONS=depth=$depth watch "$victims/victim-leak" 3 10
	exits 0
	leaks 30 3 lose
done
env LD_PRELOAD="$library" LEAKWATCH_OPTIONS=help=1 "$victims/victim-leak" 0 >out 2>err
for option in json log_path exitcode depth suppressions min_bytes follow report full_stacks color \
	verbose help; do
	ok "help=1 lists $option" matches err "$option"
done
done_testing
